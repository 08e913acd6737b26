const { summary, trace, cut } = data;

// ---- Where things come from ----

/** Hues that stand apart from each other and from those of the other parts. */
const HUES = [145, 85, 8, 305, 165, 62, 348, 118, 22, 288];
const hues = new Map();
function hue(skill) {
  if (!hues.has(skill)) hues.set(skill, HUES[hues.size % HUES.length]);
  return hues.get(skill);
}

/** The class, name and colour of where a part came from. */
function source(from) {
  const [kind, ...rest] = text(from).split(":");
  const name = rest.join(":");
  if (kind === "skill") return { class: "skill", name: `skill ${name}`, hue: hue(name) };
  if (kind === "tool") return { class: "tool", name: name ? `result of ${name}` : "result" };
  if (kind === "tools") return { class: "tools-part", name: "tools" };
  if (["system", "catalog", "context", "history", "user", "assistant", "summary"].includes(kind)) return { class: kind, name: kind };
  return { class: "context", name: text(from) };
}

/** A share as the program prints it. */
const share = (value) => { const it = Math.min(Math.max(Number(value) || 0, 0), 1) * 100; return it > 0 && it < 1 ? "< 1 %" : `${Math.round(it)} %`; };

const skillName = (name) => h("span", { class: "skill", "--hue": hue(text(name)) }, h("span", { class: "dot" }), ` ${text(name)}`);

function legend(names) {
  return h("ul", { class: "legend" }, names.map(([from, amount, share]) => {
    const it = from === "rest" ? { class: "rest", name: "rest of the window" } : source(from);
    return h("li", { class: it.class, "--hue": it.hue }, h("span", { class: "dot" }), it.name, amount !== undefined && h("b", {}, number(amount)), share && h("span", {}, share));
  }));
}

// ---- What the model was told ----

/** The digests of the messages that a step told the model: some of the step before, and its own. */
const told = (turn, at) => turn.steps.slice(0, at + 1).reduce((ids, { asked }) => (asked ? ids.slice(0, Number(asked.same) || 0).concat(list(asked.messages)) : ids), []);

/** What had been told before a step, by the one before it or by the turn before. */
function toldBefore(turn, at) {
  if (turn.steps.slice(0, at).some((it) => it.asked)) return new Set(told(turn, at - 1));
  const earlier = trace.turns.slice(0, trace.turns.indexOf(turn)).findLast((it) => it.session === turn.session);
  return new Set(earlier ? told(earlier, earlier.steps.length - 1) : []);
}

const newIn = (turn, at) => { const before = toldBefore(turn, at); return list(turn.steps[at].asked?.messages).filter((it) => !before.has(it)); };

// ---- The budget ----

const used = (budget) => list(budget.parts).reduce((sum, it) => sum + it[1], 0);
const fullest = Math.max(1, ...trace.turns.flatMap((turn) => turn.steps.map((step) => used(step.budget))));

/** One bar, as long as the fullest prompt of the trace; a tick says where the window ends, at the edge if that is further. */
function budgetBar(budget) {
  const all = Math.max(fullest, used(budget), 1);
  const said = list(budget.parts).map(([from, tokens]) => `${source(from).name} ${number(tokens)}`).join(", ");
  return h("div", { class: "budget", role: "img", "aria-label": `Token budget: ${said || "empty"}${budget.window ? ` of ${number(budget.window)}` : ""}` },
    list(budget.parts).map(([from, tokens]) => {
      const it = source(from);
      return h("i", { class: it.class, "--hue": it.hue, width: `${(tokens * 100) / all}%`, title: `${it.name}: ${number(tokens)}` });
    }),
    budget.window && h("span", { class: `window${budget.window > all ? " beyond" : ""}`, left: `${Math.min((budget.window * 100) / all, 100)}%`, title: `window: ${number(budget.window)} tokens` }));
}

function budgetCard(budget, spent) {
  const total = used(budget);
  const names = list(budget.parts).map(([from, tokens]) => [from, tokens, percent(tokens, budget.window || total)]);
  if (budget.window) names.push(["rest", Math.max(budget.window - total, 0), percent(Math.max(budget.window - total, 0), budget.window)]);
  const aside = `${number(total)} tokens by estimate${budget.window ? ` of ${number(budget.window)}` : ""}${spent ? `, ${number(spent.input)} as the provider counts` : ""}`;
  return card("Token budget", aside, budgetBar(budget), legend(names));
}

// ---- The rows of the timeline ----

const tookOf = (event) => (event ? Number(event.took_ms) : NaN);
const turnTook = (turn) => { const it = tookOf(turn.ended); return Number.isFinite(it) ? it : turn.until - turn.at; };
const longest = Math.max(1, ...trace.turns.map(turnTook));

function bar(turn, at, took) {
  const all = Math.max(turnTook(turn), turn.until - turn.at, 1);
  const left = Math.min(Math.max(((at - turn.at) * 100) / all, 0), 99);
  return [left, Math.min(((Number.isFinite(took) ? took : turn.until - at) * 100) / all, 100 - left)];
}

const isBad = (call) => Boolean(call.returned) && call.returned.outcome?.status !== "ok";

for (const [number, turn] of trace.turns.entries()) {
  const error = turn.ended?.error;
  const parent = addRow({
    kind: "turn", level: 1, turn, failed: Boolean(error), label: oneLine(turn.prompt) || `Turn ${turn.turn}`,
    time: duration(turnTook(turn)), bar: [0, (turnTook(turn) * 100) / longest], show: () => showTurn(turn, number),
    words: () => [turn.prompt, turn.session, turn.ended, turn.events],
  });
  for (const [at, step] of turn.steps.entries()) {
    const reply = step.replied?.reply;
    const calls = step.calls.map((it) => it.tool);
    const failed = step.replied?.event === "failed";
    const row = addRow({
      kind: "step", level: 2, parent, turn, step, failed, time: duration(tookOf(step.replied)), bar: bar(turn, step.at, tookOf(step.replied)),
      label: step.asked ? `Step ${step.asked.step ?? ""}` : "Before the first step",
      aside: failed ? oneLine(step.replied.message) : calls.length ? `→ ${calls.join(", ")}` : oneLine(reply?.message?.content),
      below: step.asked && budgetBar(step.budget), show: () => showStep(turn, at),
      words: () => [newIn(turn, at).map((it) => trace.said[it]), list(step.asked?.tools).map((it) => trace.said[it]?.name), step.asked?.model, step.replied, step.fitted],
    });
    for (const call of step.calls) {
      addRow({
        kind: "call", level: 3, parent: row, turn, step, call, failed: isBad(call), time: duration(tookOf(call.returned)),
        bar: bar(turn, call.at, tookOf(call.returned)), label: call.tool, aside: oneLine(call.input, 80),
        show: () => showCall(turn, step, call), words: () => [call.tool, call.id, call.action, call.input, call.returned],
      });
    }
  }
}
if (trace.other.length) {
  addRow({
    kind: "turn", level: 1, label: "Other events", aside: `${trace.other.length} unknown`,
    show: () => [h("h2", {}, "Other events"), trace.other.map((it) => card(text(it.event) || "event", "", block("as it stands in the trace", it)))],
    words: () => trace.other,
  });
}

// ---- The details ----

const failure = (title, message) => h("section", { class: "card bad", role: "alert" }, h("h3", {}, title), h("div", { class: "prose" }, text(message)));
const spentFacts = (spent) => spent ? [[number(spent.input), "tokens in"], spent.cached ? [number(spent.cached), "of them cached"] : null, [number(spent.output), "out"]] : [];

function showTurn(turn, at) {
  const of = (kind) => turn.events.filter((it) => it.event === kind);
  const ended = turn.ended;
  const spending = of("spending").at(-1);
  return [
    h("h2", {}, `Turn ${turn.turn || at + 1}`),
    facts([duration(turnTook(turn)), ended ? "" : "until the trace ends"], counted(turn.steps.filter((it) => it.asked).length, "step"),
      counted(turn.steps.reduce((sum, it) => sum + it.calls.length, 0), "call"), ...spentFacts(ended?.spent),
      spending && Number.isFinite(spending.turn_cost) ? [money(spending.turn_cost), "cost"] : null,
      spending && Number.isFinite(spending.cost) ? [money(spending.cost), "spent in the session"] : null,
      turn.at ? [moment(turn.at), ""] : null, turn.session ? [turn.session, "session", "quiet"] : null),
    ended?.error && failure("It has no answer", ended.error),
    card("Request", "", h("div", { class: "prose" }, turn.prompt || "–")),
    ended?.answer && card("Answer", "", markdown(ended.answer)),
    of("matched").map(showMatch),
    of("disclosed").length > 0 && card("Skills shown to the model", "", table(
      [{ name: "Skill", class: "name" }, { name: "Level" }, { name: "By" }, { name: "Tokens", class: "number" }],
      of("disclosed").map((it) => [skillName(it.skill), text(it.level), text(it.by), number(it.tokens)]))),
    turn.steps.some((it) => it.asked) && card("Token budget by step", "", h("div", { class: "bars" }, turn.steps.filter((it) => it.asked).map((step) => [
      h("button", { type: "button", onclick: () => select(rows.findIndex((it) => it.step === step && it.kind === "step"), true) }, `Step ${step.asked.step ?? ""}`),
      budgetBar(step.budget), h("span", { class: "number" }, number(used(step.budget)))])),
      legend([...new Set(turn.steps.flatMap((it) => list(it.budget.parts).map((part) => part[0])))].map((it) => [it]))),
    turn.steps.filter((it) => it.fitted && list(it.fitted.steps).length).map((it) => showFit(it.fitted, `step ${it.asked?.step ?? ""}`)),
    of("approval").length > 0 && card("Approvals", "", table([{ name: "To" }, { name: "Why" }, { name: "Answer" }, { name: "By" }],
      of("approval").map((it) => [text(it.what), text(it.why), badge(text(it.reply), it.reply === "no" ? "bad" : "good"), text(it.by)]))),
    happened(turn),
  ];
}

function showMatch(event) {
  const scores = list(event.scores);
  return card("Matching", `by ${text(event.strategy)}`,
    list(event.unknown).length > 0 && h("p", {}, badge("not found", "warn"), ` ${list(event.unknown).join(", ")}`),
    scores.length === 0 ? h("p", { class: "quiet" }, "No skill was considered.") : table(
      [{ name: "Skill", class: "name" }, { name: "Confidence" }, { name: "Shown" }, { name: "Why" }],
      scores.map((it) => [
        skillName(it.name),
        it.carried ? h("span", { class: "quiet" }, "carried over") : h("span", { class: "meter" }, h("span", { class: "track" }, h("i", { width: `${Math.min(Math.max(Number(it.confidence) || 0, 0), 1) * 100}%` })), share(it.confidence)),
        it.level ? badge(text(it.level), "good") : h("span", { class: "quiet" }, "–"), list(it.why).map(text).join(" · ")])));
}

function showFit(event, where) {
  const done = list(event.steps), skills = list(event.skills);
  return card("Fitting into the window", where || `${number(event.window)} tokens`,
    done.length > 0 && table([{ name: "Step", class: "name" }, { name: "Before", class: "number" }, { name: "After", class: "number" }, { name: "What" }],
      done.map((it) => [text(it.step), number(it.before), number(it.after), text(it.what)])),
    done.length === 0 && h("p", { class: "quiet" }, "Everything fits; nothing was shortened."),
    skills.length > 0 && table([{ name: "Skill", class: "name" }, { name: "Priority" }, { name: "Level" }, { name: "Tokens", class: "number" }, { name: "" }],
      skills.map((it) => [skillName(it.name), text(it.priority), text(it.level), number(it.tokens),
        it.kept === false ? badge(`left out: ${text(it.left_out_by)}`, "bad") : badge("kept", "good")])));
}

/** What happened beside asking and calling, in order. */
function happened(turn) {
  const words = {
    discovered: (it) => [`${count(it.skills, "skill")} discovered`, list(it.findings).length > 0 && h("div", { class: "quiet" }, list(it.findings).join("; "))],
    matched: (it) => `${list(it.scores).filter((score) => score.level).length} of ${count(list(it.scores).length, "skill")} chosen`,
    disclosed: (it) => `${text(it.skill)} shown to the model (${text(it.level)}, ${text(it.by)})`,
    retrieved: (it) => `retrieved ${list(it.documents).join(", ") || "nothing"}`,
    summarised: (it) => [it.error && badge("failed", "bad"), ` ${text(it.model)} ${it.error ? `did not summarise ${count(it.messages, "message")}: ${text(it.error)}` : `summarised ${count(it.messages, "message")}: ${oneLine(it.text)}`}`],
    compacted: (it) => `${number(it.before)} messages became ${number(it.after)}, summarised by ${text(it.by)}`,
    retried: (it) => [badge(`try ${text(it.attempt)}`, "warn"), ` after ${duration(it.wait_ms)}: ${text(it.message)}`],
    approval: (it) => [badge(text(it.reply), it.reply === "no" ? "bad" : "good"), ` to ${text(it.what)}, by ${text(it.by)}`],
    server: (it) => [badge(text(it.state), ["failed", "refused"].includes(it.state) ? "bad" : "good"), ` server ${text(it.server)} of ${text(it.skill)}: ${text(it.message)}`],
    spending: (it) => `${number(it.spent?.input)} tokens in and ${number(it.spent?.output)} out so far${Number.isFinite(it.cost) ? `, ${money(it.cost)}` : ""}`,
    warned: (it) => [badge("warning", "warn"), ` ${text(it.message)}`],
  };
  if (!turn.events.length) return null;
  return card("What else happened", "", h("ol", { class: "events" }, turn.events.map((it) => h("li", {},
    h("span", { class: "at" }, it.at ? duration(Math.max(it.at - turn.at, 0)) : ""),
    h("span", { class: "what" }, (words[it.event] || ((other) => `${text(other.event)} ${oneLine(other)}`))(it))))));
}

function showStep(turn, at) {
  const step = turn.steps[at];
  const { asked, replied } = step;
  const reply = replied?.reply;
  if (!asked) return [h("h2", {}, "Before the first step"), h("p", { class: "quiet" }, "Calls of an earlier turn that had not been made.")];
  const messages = told(turn, at), before = toldBefore(turn, at);
  const froms = [...new Set(messages.flatMap((it) => list(trace.said[it]?.parts).map((part) => text(part.from))))];
  return [
    h("h2", {}, `Step ${asked.step ?? ""}`),
    facts([text(asked.model), text(asked.provider)], replied ? [duration(tookOf(replied)), ""] : ["no reply", "until the trace ends"],
      ...spentFacts(reply?.spent), reply?.stop ? [text(reply.stop), "stop reason"] : null, asked.temperature !== null && asked.temperature !== undefined ? [asked.temperature, "temperature"] : null),
    replied?.event === "failed" && failure("The model did not reply", replied.message),
    budgetCard(step.budget, reply?.spent),
    step.fitted && showFit(step.fitted),
    card("Prompt", `${count(messages.length, "message")}, as it was sent, secrets masked`, legend(froms.map((it) => [it])), h("div", { class: "block" }),
      messages.map((id, number) => message(trace.said[id], number, !before.has(id)))),
    list(asked.tools).length > 0 && card("Tools", count(list(asked.tools).length, "tool"), list(asked.tools).map((id) => {
      const tool = trace.said[id] || {};
      return h("details", { class: "message" }, h("summary", {}, h("span", { class: "role" }, text(tool.name) || "missing"), h("span", { class: "preview" }, oneLine(tool.description))),
        h("div", { class: "body" }, h("p", {}, text(tool.description)), block("input", tool.input_schema)));
    })),
    reply && card("Reply", "", reply.message?.content && markdown(reply.message.content),
      list(reply.message?.tool_calls).map((it) => block(`calls ${text(it.function?.name)}`, it.function?.arguments))),
  ];
}

function message(said, at, isNew) {
  if (!said) return h("p", { class: "quiet" }, `Message ${at + 1} is missing in the trace.`);
  const parts = list(said.parts);
  const preview = oneLine(parts.map((it) => it.text).join(" ")) || list(said.calls).map((it) => `calls ${text(it.function?.name)}`).join(", ");
  return h("details", { class: "message", open: isNew },
    h("summary", {}, h("span", { class: "role" }, text(said.role)), isNew && badge("new", "new"), h("span", { class: "preview" }, preview), h("span", { class: "number" }, `#${at + 1}`)),
    h("div", { class: "body" },
      parts.filter((it) => it.text).map((it) => { const from = source(it.from); return h("div", { class: `part ${from.class}`, "--hue": from.hue, "data-from": text(it.from) }, h("span", { class: "from" }, from.name), h("pre", { tabindex: "0" }, text(it.text))); }),
      list(said.calls).map((it) => block(`calls ${text(it.function?.name)}`, it.function?.arguments)),
      said.attached && block("attached", said.attached), said.rest && block("other fields", said.rest)));
}

function showCall(turn, step, call) {
  const outcome = call.returned?.outcome || {};
  const bad = isBad(call);
  const { status, message: what, hint, output, stdout, stderr, ...rest } = outcome;
  const during = turn.events.filter((it) => it.event === "approval" && it.at >= call.at && (!call.returned || it.at <= call.returned.at));
  return [
    h("h2", {}, call.tool, " ", call.returned ? badge(text(status), bad ? "bad" : "good") : badge("no result", "warn")),
    facts([duration(tookOf(call.returned)) || "–", ""], step.asked ? [`step ${step.asked.step ?? ""}`, ""] : null, [call.id, "call"]),
    (what || hint) && h("section", { class: `card ${bad ? "bad" : ""}` }, h("h3", {}, "What went wrong"), what && h("p", {}, text(what)), hint && h("p", { class: "quiet" }, text(hint))),
    during.length > 0 && card("Approval", "", during.map((it) => h("p", {}, badge(text(it.reply), it.reply === "no" ? "bad" : "good"), ` to ${text(it.what)} (${text(it.why)}), by ${text(it.by)}`))),
    card("Input", call.action ? `to ${oneLine(call.action)}` : "", h("div", { class: "block" }, h("pre", { tabindex: "0" }, readable(call.input)))),
    call.returned && card("Outcome", "", output !== undefined && block("output", output), stdout !== undefined && block("stdout", stdout), stderr && block("stderr", stderr),
      Object.keys(rest).length > 0 && block("other fields", rest)),
  ];
}

// ---- The head of the page ----

const prompt = trace.turns.find((it) => it.prompt)?.prompt;
document.title = `Trace: ${oneLine(prompt, 60) || summary.sessions.join(", ")}`;
const totals = [
  counted(summary.turns, "turn"), counted(summary.steps, "step"), counted(summary.calls, "call"),
  [duration(summary.took_ms), ""], [number(summary.tokens.input), "tokens in"], [number(summary.tokens.output), "out"],
  summary.tokens.cached ? [number(summary.tokens.cached), "cached"] : null, Number.isFinite(summary.cost) ? [money(summary.cost), "cost"] : null,
  summary.models.length ? [summary.models.join(", "), ""] : null, summary.errors ? [summary.errors, summary.errors === 1 ? "error" : "errors", "bad", nextFailed] : null,
];
const notices = [
  trace.is_torn && "The last line of the trace is incomplete and was left out.",
  trace.unreadable.length && `Lines that cannot be read were left out: ${trace.unreadable.join(", ")}.`,
  trace.left_out && `There are ${number(trace.left_out)} more events than this page shows.`,
  cut < 256 * 1024 && `The trace is large: of each text over ${number(cut)} bytes the middle is left out.`,
];
begin(oneLine(prompt, 120) || "Trace", totals, notices, "Nothing has happened in this trace yet.");
