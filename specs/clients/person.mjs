// A person with a browser: opens a URL, fills in every form, and says where that leads.

let [url, code] = process.argv.slice(2);
const home = new URL(url).origin;
const cookies = new Map();
let body;
for (let step = 0; step < 30; step += 1) {
    const headers = { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
    const response = await fetch(url, { method: body ? 'POST' : 'GET', headers, body, redirect: 'manual' });
    for (const cookie of response.headers.getSetCookie()) {
        const [name, value] = cookie.split(';')[0].split('=');
        value ? cookies.set(name, value) : cookies.delete(name);
    }
    body = undefined;
    const text = await response.text();
    const to = response.headers.get('location');
    const form = text.match(/<form[^>]*action="([^"]+)"[^>]*>(.*?)<\/form>/s);
    if (to) {
        url = new URL(to, url).href;
    } else if (form && url.startsWith(home)) {
        url = new URL(form[1], url).href;
        body = new URLSearchParams();
        for (const [input] of form[2].matchAll(/<input[^>]*>/g)) {
            const value = (name) => input.match(new RegExp(`\\b${name}="([^"]*)"`))?.[1];
            const typed = { login: 'ada', password: 'x', user_code: code }[value('name')];
            if (value('name')) body.set(value('name'), typed ?? value('value') ?? '');
        }
    } else {
        console.log(response.status, text);
        break;
    }
}
