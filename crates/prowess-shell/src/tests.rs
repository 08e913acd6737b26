//! The parser on known texts, and on hostile ones.

use std::process::{Command as Process, Stdio};

use proptest::prelude::*;

use super::*;

/// Formats a script as one line: words in brackets, with their parts.
fn shown(text: &str) -> String {
    match parse(text) {
        Ok(script) => list(&script),
        Err(error) => format!("error {}: {}", error.line, error.message),
    }
}

fn list(script: &ShellScript) -> String {
    let pipelines = script.0.iter().map(|it| {
        let commands: Vec<String> = it.commands.iter().map(command).collect();
        let sign = match it.operator {
            ListOperator::Sequence => ";",
            ListOperator::And => " &&",
            ListOperator::Or => " ||",
            ListOperator::Background => " &",
        };
        let negation = if it.is_negated { "! " } else { "" };
        format!("{negation}{}{sign}", commands.join(" | "))
    });
    pipelines.collect::<Vec<_>>().join(" ")
}

fn command(command: &ShellCommand) -> String {
    let words = |it: &[Word]| it.iter().map(word).collect::<Vec<_>>().join(" ");
    let mut parts = Vec::new();
    match &command.kind {
        CommandKind::Simple { assignments, words: own } => {
            parts.extend(assignments.iter().map(|it| {
                format!("{}{}{}", it.name, if it.appends { "+=" } else { "=" }, words(&it.value))
            }));
            parts.extend(own.iter().map(word));
        }
        CommandKind::Function { name, body } => {
            parts.push(format!("fn {} {}", word(name), self::command(body)));
        }
        CommandKind::Compound { kind, words: own, bodies } => {
            let bodies = bodies.iter().map(list).collect::<Vec<_>>().join(" / ");
            parts.push(format!("{kind:?}({}: {bodies})", words(own)));
        }
    }
    parts.extend(command.redirects.iter().map(|it| format!("{:?} {}", it.kind, word(&it.target))));
    parts.join(" ")
}

fn word(word: &Word) -> String {
    word.0.iter().map(part).collect()
}

fn part(part: &WordPart) -> String {
    let all = |it: &[WordPart]| it.iter().map(self::part).collect::<String>();
    match part {
        WordPart::Plain(text) => text.clone(),
        WordPart::Quoted(text) => format!("«{}»", text.replace('\n', "⏎")),
        WordPart::Variable { name, rest, .. } => format!("<{name}{}>", all(rest)),
        WordPart::Substitution { script, .. } => format!("$({})", list(script)),
        WordPart::Process(script) => format!("<({})", list(script)),
        WordPart::Arithmetic(parts) => format!("(({}))", all(parts)),
        WordPart::List(words) => {
            format!("[{}]", words.iter().map(self::word).collect::<Vec<_>>().join(" "))
        }
    }
}

#[test]
fn scripts_are_read_as_a_shell_reads_them() {
    for (text, expected) in [
        ("", ""),
        ("# only this", ""),
        ("a b;c", "a b; c;"),
        ("a&&b||c&d", "a && b || c & d;"),
        ("a |b\n|c", "error 2: unexpected `|`"),
        ("a |\n\n b", "a | b;"),
        ("! a", "! a;"),
        ("a#b #c", "a#b;"),
        ("a'b c'\"d $e\"", "a«b c»«d »<e>;"),
        ("a\\ b \\\\", "a« »b «\\»;"),
        ("a\\\nb \\\n c", "ab c;"),
        ("''", "«»;"),
        ("\"\"", "«»;"),
        ("$'a\\tb\\x41\\101\\u0042\\'' $\"x\"", "«a\tbAAB'» «x»;"),
        (
            "$a ${a} ${a:-b c} ${#a} ${!a} $1 ${10} $@ $$ $",
            "<a> <a> <a:-b c> <#a> <!a> <1> <10> <@> <$> $;",
        ),
        ("\"${a:-'}'}\"", "«»<a:-'>«'}»;"),
        ("$(a b) `c \\`d\\``", "$(a b;) $(c $(d;););"),
        ("\"$(echo \"a b\")\"", "«»$(echo «a b»;);"),
        ("$((1 + (2) * $x))", "((1 + (2) * <x>));"),
        ("<(a) >(b)", "<(a;) <(b;);"),
        ("a=1 b+=2 c=(x y) d", "a=1 b+=2 c=x y d;"),
        ("a[1]=x", "a=x;"),
        ("x a=1", "x a=1;"),
        ("'a'=1", "«a»=1;"),
        ("a >b 2>&1 <c >>d &>e >|f", "a Output b Duplicate 1 Input c Output d Output e Output f;"),
        ("a >&b 3<>c", "a Output b Output c;"),
        ("a <<< b", "a Here b;"),
        ("a <<E b\none $x\nE\nc", "a b Here «one »<x>«⏎»; c;"),
        ("a <<'E'\n$x `y`\nE\n", "a Here «$x `y`⏎»;"),
        ("a <<-E; b\n\tx\n\tE\nc", "a Here «x⏎»; b; c;"),
        ("a <<A <<B\n1\nA\n2\nB\n", "a Here «1⏎» Here «2⏎»;"),
        ("a <<E\nnever ends", "a Here «never ends»;"),
        ("$(a <<E\nx\nE\n)", "$(a Here «x⏎»;);"),
        ("a <<E \"b\nc\"\nE\n", "error 1: a line continues before its here-document"),
        ("(a; b)", "Subshell(: a; b;);"),
        ("((a))", "Subshell(: Subshell(: a;););"),
        ("{ a; } >b", "Group(: a;) Output b;"),
        ("{a", "{a;"),
        ("if a; then b; elif c; then d; else e; fi", "If(: a; / b; / c; / d; / e;);"),
        ("while a; do b; done <c", "While(: a; / b;) Input c;"),
        ("for x in a b; do c; done", "For(\"x\")(a b: c;);"),
        ("for x\ndo c; done", "For(\"x\")(: c;);"),
        ("for ((i=0; i<3; i++)); do c; done", "For(\"\")(((i=0; i<3; i++)): c;);"),
        ("case $x in a|b) c;; (d) e ;; *) ;; esac", "Case(<x> a b d *: c; / e; / );"),
        ("[[ a && b =~ (c|d) ]] && e", "Test(a && b =~ ( c | d ): ) && e;"),
        ("f() { a; }", "fn f Group(: a;);"),
        ("f () a", "fn f a;"),
        ("function f { a; }", "fn f Group(: a;);"),
        (":(){ :|:& };:", "fn : Group(: : | : &); :;"),
        ("echo if then }", "echo if then };"),
        ("'if' a", "«if» a;"),
        ("ifx", "ifx;"),
        ("a\u{a0}b ä", "a\u{a0}b ä;"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_script_is_refused_with_its_line() {
    for (text, expected) in [
        ("a\n'b", "error 2: a quote is not closed"),
        ("\"a", "error 1: a quote is not closed"),
        ("`a", "error 1: a quote is not closed"),
        ("$(a", "error 1: unexpected end of the script"),
        ("${", "error 1: unexpected end of the script"),
        ("$((1)", "error 1: unexpected `)`"),
        ("a)", "error 1: unexpected `)`"),
        ("a;;b", "error 1: unexpected `;`"),
        ("a && ", "error 1: unexpected end of the script"),
        ("| a", "error 1: unexpected `|`"),
        ("if a; then", "error 1: `fi` is missing"),
        ("\n{ a", "error 2: `}` is missing"),
        ("a >", "error 1: unexpected end of the script"),
        ("a\0b", "error 1: there is a null character"),
        ("${ a; }", "error 1: unexpected ` `"),
        ("\"${a#'x'}\"", "error 1: unexpected `\\'`"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
    let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
    assert_eq!(shown(&deep), "error 1: the script is nested too deeply");
}

/// Generates scripts that a shell accepts, from its grammar.
fn script() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "[a-z]{1,4}",
        "'[a-z $`\"#]{0,6}'",
        "\"[a-z '#]{0,6}\"",
        Just("$x".to_owned()),
        Just("${y:-z}".to_owned()),
        Just("\\;".to_owned()),
        Just("*.txt".to_owned()),
        Just("a#b".to_owned()),
        Just("$((1 + 2))".to_owned()),
    ];
    let simple = prop::collection::vec(word, 1..4).prop_map(|it| format!("x {}", it.join(" ")));
    simple.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} | {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} && {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}\n{b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} & {b}")),
            inner.clone().prop_map(|a| format!("( {a} )")),
            inner.clone().prop_map(|a| format!("{{ {a}\n}}")),
            inner.clone().prop_map(|a| format!("x \"$( {a} )\"")),
            inner.clone().prop_map(|a| format!("if {a}; then {a}; fi")),
            inner.clone().prop_map(|a| format!("for i in 1 2; do {a}\ndone")),
            inner.clone().prop_map(|a| format!("while {a}; do {a}; done > out")),
            inner.clone().prop_map(|a| format!("case x in a|b) {a} ;; *) {a}\n;; esac")),
            inner.clone().prop_map(|a| format!("f() {{ {a}; }}")),
            // A separate delimiter for each, because shells disagree about one inside another.
            inner.prop_map(|a| format!("cat <<E{0}\n$( {a} )\nE{0}\n{a}", a.len())),
        ]
    })
}

/// Whether the shell of this system accepts a script.
fn is_taken(text: &str) -> bool {
    let mut shell = Process::new("/bin/sh");
    shell.args(["-n", "-c", text]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().unwrap().success()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn what_the_grammar_gives_is_read(text in script()) {
        prop_assert!(!is_taken(&text) || parse(&text).is_ok(), "{}\n{}", text, shown(&text));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[ -~\n\u{e4}\u{1f600}]{0,80}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_signs_make_it_panic(text in prop::collection::vec(prop::sample::select(&[
        "(", ")", "{", "}", "$", "$(", "${", "$((", "`", "\"", "'", "\\", "\n", ";", "&", "|", "<", ">", "<<E",
        "E\n", "if ", "then ", "fi", "case ", " in ", "esac", "do ", "done", "x=", "f()", "[[", "]]", "a", " ", "#", "!",
    ][..]), 0..60)) {
        let text: String = text.concat();
        let _ = parse(&text);
        let _ = lint(&text);
    }
}
