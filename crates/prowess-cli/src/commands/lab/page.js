const { evaluation, families, findings, standings, studied } = data;

const STANDINGS = [
  ["never_found", "Never found", "No request in its own words ranks it among the first three with enough confidence."],
  ["contested", "Contested", "Other skills, or none, answer most requests in its own words."],
  ["found", "Found", "At least half of all requests in its own words match it."],
  ["for_people", "For people", "Only people can invoke it: no request matches it."],
  ["hidden", "Hidden", "Another skill with its name is used."],
  ["not_in_use", "Not in use", "It is a draft, or disabled."],
];
/** How many skills the heat map has at the most. */
const HOT = 24;
/** How many failures are shown. */
const MOST_FAILED = 500;

const kindOf = (standing) => `is-${standing}`;
const share = (value) => (Number.isFinite(value) ? value.toFixed(2) : "–");
const sure = (value) => (value > 0 && value < 0.01 ? "< 1 %" : `${Math.floor((value || 0) * 100)} %`);
const meter = (value) => h("span", { class: "meter" }, h("span", { class: "track" }, h("i", { width: `${Math.min(Math.max(value || 0, 0), 1) * 100}%` })), sure(value));
/** A sentence in which what stands in backticks is code. */
const sentence = (words) => text(words).split("`").map((it, at) => (at % 2 ? h("code", {}, it) : it));
const shownOf = (shown, all) => (shown < all ? `${number(shown)} of ${count(all, "request")}` : count(all, "request"));
const quiet = (words) => h("p", { class: "quiet" }, words);

const rowOf = new Map();
/** A skill, which leads to its row where it has one. */
function skillLink(name) {
  if (!name) return h("span", { class: "quiet" }, "no skill");
  const row = rowOf.get(name);
  return row ? h("button", { type: "button", class: "link", onclick: () => select(row.at, true) }, name) : name;
}

// ---- The rows ----

const overview = addRow({ kind: "turn", level: 1, label: "Overview", show: showOverview, words: () => [] });
if (evaluation.requests) {
  addRow({
    kind: "turn", level: 1, label: "Evaluation", aside: `${number(evaluation.passed)} of ${count(evaluation.requests, "request")} passed`, failed: !evaluation.holds,
    bar: [0, (evaluation.passed * 100) / evaluation.requests], show: showEvaluation, words: () => [evaluation.failed, evaluation.scores],
  });
}
if (families.length) {
  addRow({ kind: "turn", level: 1, label: "Almost the same", time: number(families.length), show: showFamilies, words: () => families });
}
if (findings.length) {
  addRow({ kind: "turn", level: 1, label: "Evaluation files at fault", failed: true, time: number(findings.length), show: showFindings, words: () => findings });
}
for (const [standing, title, meaning] of STANDINGS) {
  const own = studied.filter((it) => it.standing === standing);
  const all = standings[standing] || 0;
  if (!all) continue;
  const parent = addRow({ kind: "turn", level: 1, label: title, time: number(all), show: () => showStanding(title, meaning, own, all), words: () => [] });
  for (const it of own) {
    rowOf.set(it.name, addRow({
      kind: `skill ${kindOf(standing)}`, level: 2, parent, label: it.name, aside: it.because && sentence(it.because), title: [it.name, it.because].filter(Boolean).join(": "), time: it.probes.length ? `${it.won} / ${it.probes.length}` : "",
      bar: it.probes.length ? [0, (it.won * 100) / it.probes.length] : null, show: () => showSkill(it, title), words: () => it,
    }));
  }
}

// ---- The details ----

function showOverview() {
  const all = Math.max(1, ...[STANDINGS.reduce((sum, [it]) => sum + (standings[it] || 0), 0)]);
  const there = STANDINGS.filter(([it]) => standings[it]).reverse();
  const worst = studied.filter((it) => it.because).slice(0, 10);
  return [
    h("h2", {}, "Overview"),
    facts([number(data.skills), "skills"], [sure(data.threshold), "minimum confidence"]),
    card("Results of requests in the skills' own words", "",
      h("div", { class: "standings", role: "img", "aria-label": there.map(([it, title]) => `${title}: ${standings[it]}`).join(", ") },
        there.map(([it]) => h("i", { class: kindOf(it), width: `${(standings[it] * 100) / all}%` }))),
      h("ul", { class: "legend" }, there.map(([it, title]) => h("li", { class: kindOf(it) }, h("span", { class: "dot" }), title, h("b", {}, number(standings[it])))))),
    worst.length > 0 ? card("Where to begin", "the worst first", skillTable(worst)) : card("Where to begin", "", quiet("Every skill is found by its own words.")),
    worst.length === 0 && data.closest.length > 0 && card("Closest pairs", "descriptions that share most",
      h("ul", {}, data.closest.map((it) => h("li", {}, it.members.map((its) => its.name).join(" and "), `: ${sure(it.members[0].likeness)} alike`)))),
  ];
}

const adviceList = (it) => h("ul", { class: "advice" }, it.advice.map((advice) => h("li", {}, sentence(advice))));
const skillTable = (skills) => table([{ name: "Skill", class: "name" }, { name: "First", class: "number" }, { name: "Because" }, { name: "Advice" }],
  skills.map((it) => [skillLink(it.name), it.probes.length ? `${it.won} of ${it.probes.length}` : "–", sentence(it.because), adviceList(it)]));

function showStanding(title, meaning, own, all) {
  return [h("h2", {}, title), quiet(meaning), own.length < all && quiet(`${number(all - own.length)} more are not on this page.`),
    own.length > 0 && card(count(all, "skill"), "", skillTable(own.slice(0, 200)))];
}

function showSkill(it, title) {
  const kind = { never_found: "bad", contested: "warn", found: "good" }[it.standing] || "";
  const words = (name, all) => all.length > 0 && h("p", { class: "words" }, name, all.map((word) => h("code", {}, word)));
  return [
    h("h2", {}, it.name, " ", badge(title.toLowerCase(), kind)),
    h("p", { class: "path" }, it.path),
    it.advice.length > 0 && card("What to do", sentence(it.because), adviceList(it)),
    card("Description", "", h("div", { class: "prose" }, it.description || "–")),
    it.probes.length > 0 && card("Requests in its own words", `first for ${it.won} of ${it.probes.length}`, table(
      [{ name: "Request" }, { name: "Place", class: "number" }, { name: "Confidence" }, { name: "First", class: "name" }, { name: "Confidence" }],
      it.probes.map((probe) => [probe.request, probe.rank ?? "–", meter(probe.confidence), skillLink(probe.first), meter(probe.first_confidence)]))),
    it.thieves.length > 0 && card("Skills that match instead", "", table(
      [{ name: "Skill", class: "name" }, { name: "Requests", class: "number" }, { name: "Ahead by", class: "number" }],
      it.thieves.map((thief) => [skillLink(thief.name), thief.takes, sure(thief.lead)]))),
    (it.shared.length > 0 || it.own.length > 0) && card("Words", "", words("shared with the first of them", it.shared), words("its own, hardly in any description yet", it.own)),
  ];
}

function showFamilies() {
  return [h("h2", {}, "Almost the same"), quiet("Of each family the first is matched; the others only answer what is said of them alone."),
    families.map((family) => card(count(family.members.length, "skill"), `${family.alike}s alike`, table(
      [{ name: "Skill", class: "name" }, { name: "Alike" }, { name: "Path" }],
      family.members.map((it) => [skillLink(it.name), meter(it.likeness), h("span", { class: "path" }, it.path)]))))];
}

function showFindings() {
  return [h("h2", {}, "Evaluation files at fault"), findings.map((it) => card(it.message, "", h("p", { class: "path" }, it.line ? `${it.path}:${it.line}` : it.path), quiet(it.hint)))];
}

function showEvaluation() {
  const { total } = evaluation;
  return [
    h("h2", {}, "Evaluation ", badge(evaluation.holds ? "passed" : "failed", evaluation.holds ? "good" : "bad")),
    facts([`${number(evaluation.passed)} of ${number(evaluation.requests)}`, "passed"], [share(total.precision), "precision"], [share(total.recall), "recall"], [share(total.f1), "F1"]),
    heatMap(),
    evaluation.failed.length > 0 && card("Failed", shownOf(Math.min(evaluation.failed.length, MOST_FAILED), evaluation.requests - evaluation.passed), table(
      [{ name: "Request" }, { name: "Expected", class: "name" }, { name: "Matched", class: "name" }, { name: "Because of" }],
      evaluation.failed.slice(0, MOST_FAILED).map((it) => [
        [it.request, h("div", { class: "path" }, `${it.path}:${it.line}`)],
        it.not ? ["not ", skillLink(it.not)] : it.expected.length ? it.expected.map((name, at) => [at > 0 && " or ", skillLink(name)]).concat(it.rank ? [h("div", { class: "quiet" }, `came ${it.rank}.`)] : []) : skillLink(null),
        [skillLink(it.matched), it.matched && h("div", { class: "quiet" }, sure(it.confidence))], it.why.join(" · ")]))),
    card("By skill", "the worst first", table(
      [{ name: "Skill", class: "name" }, ...["Right", "Wrong", "Missed", "Precision", "Recall", "F1"].map((name) => ({ name, class: "number" }))],
      evaluation.scores.slice(0, 500).map((it) => [skillLink(it.name), it.right, it.wrong, it.missed, share(it.precision), share(it.recall), share(it.f1)]))),
  ];
}

/** Expected by matched, for the skills that are confused most. */
function heatMap() {
  const wrong = evaluation.matrix.filter((it) => it.expected !== it.matched);
  if (!wrong.length) return card("Confusion", "", quiet("Nothing was confused."));
  const first = (field) => [...new Set(wrong.map((it) => it[field]))].slice(0, HOT);
  const expected = first("expected");
  const matched = [...new Set([...first("matched"), ...expected])].slice(0, HOT);
  const cells = new Map(evaluation.matrix.map((it) => [JSON.stringify([it.expected, it.matched]), it.count]));
  const most = Math.max(...evaluation.matrix.map((it) => it.count));
  const name = (it) => it ?? "no skill";
  const cell = (row, column) => {
    const many = cells.get(JSON.stringify([row, column]));
    const kind = row === column ? "right" : "wrong";
    return h("td", many ? { class: kind, "--share": `${20 + (65 * many) / most}%`, title: `${count(many, "request")} for ${name(row)} matched ${name(column)}` } : {}, many);
  };
  return card("Confusion", "rows: expected, columns: matched", h("div", { class: "scroll" }, h("table", { class: "heat" },
    h("thead", {}, h("tr", {}, h("th", {}, ""), matched.map((it) => h("th", { scope: "col", title: name(it) }, h("span", {}, name(it)))))),
    h("tbody", {}, expected.map((row) => h("tr", {}, h("th", { scope: "row", title: name(row) }, name(row)), matched.map((column) => cell(row, column))))))));
}

document.title = `Trigger lab: ${count(data.skills, "skill")}`;
begin("Trigger lab", [
  [number(data.skills), "skills"], ...STANDINGS.filter(([it]) => standings[it]).map(([it, title]) => [number(standings[it]), title.toLowerCase(), it === "never_found" ? "bad" : ""]),
  families.length ? [number(families.length), families.length === 1 ? "family" : "families"] : null,
  evaluation.requests ? [`${number(evaluation.passed)} / ${number(evaluation.requests)}`, "evaluations passed", evaluation.holds ? "" : "bad"] : null,
], [data.left_out && `The library is large: ${number(data.left_out)} skills with better results are not on this page.`], "There are no skills.");
