//! The chapter `specs/templates.md`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::{fs, path::Path, thread};

use prowess_template::{Template, TemplateError, TemplateLimits};
use serde_json::{Value, json};

/// Renders a template on a stack as small as that of a worker thread.
fn render(template: &str, data: Value) -> Result<String, TemplateError> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(2 << 20);
        let rendering =
            builder.spawn_scoped(scope, || prowess_template::render(template, &data)).unwrap();
        rendering.join().unwrap()
    })
}

fn rendered(template: &str, data: Value) -> String {
    render(template, data).unwrap()
}

fn refused(template: &str, data: Value) -> String {
    render(template, data).unwrap_err().to_string()
}

mod a_template_renders_as_go_renders_it {
    use super::*;

    #[test]
    fn s_30_a_template_renders_with_its_parameters() {
        let template = r#"{{define "item"}}{{.name | printf "%-6s"}}|{{end -}}
# {{.title}}{{with .by}} by {{.}}{{else}} by nobody{{end}}
{{range $i, $item := .items -}}
{{if $i}}
{{end}}{{$i}}: {{template "item" $item}}{{if and $item.done (gt $item.cost 1.5)}} done for {{$item.cost}}{{else if $item.done}} done{{else}} open{{end}}
{{- else}}nothing{{end}}"#;
        let data = json!({"title": "Plan", "items": [
            {"name": "build", "done": true, "cost": 2.5},
            {"name": "ship", "done": true, "cost": 1.0},
            {"name": "rest"},
        ]});
        let text = "# Plan by nobody\n0: build |done for 2.5\n1: ship  |done\n2: rest  |open";
        assert_eq!(rendered(template, data).replace("| ", "|"), text);
        assert_eq!(rendered(template, json!({"title": "A", "by": "B"})), "# A by B\nnothing");
    }

    #[test]
    fn every_known_case_gives_what_go_gives() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/templates/cases.jsonl");
        let (mut outputs, mut errors) = (0, 0);
        for line in fs::read_to_string(path).unwrap().lines() {
            let mut case: Value = serde_json::from_str(line).unwrap();
            let template = case["template"].as_str().unwrap().to_owned();
            match prowess_template::render(&template, &case["data"].take()) {
                Ok(output) => {
                    outputs += 1;
                    assert_eq!(Value::from(output), case["output"], "{template}");
                }
                Err(error) => {
                    errors += 1;
                    assert_eq!(Value::from(error.to_string()), case["error"], "{template}");
                }
            }
        }
        assert_eq!((outputs, errors), (771, 400));
    }

    #[test]
    fn a_number_is_an_int_or_a_float() {
        let data: Value = serde_json::from_str(
            "[1, -1, 9223372036854775807, 9223372036854775808, 18446744073709551616, 1.0, 1e2, 2.5]",
        )
        .unwrap();
        assert_eq!(
            rendered("{{range .}}{{printf `%T %v, ` . .}}{{end}}", data),
            "int 1, int -1, int 9223372036854775807, uint64 9223372036854775808, \
             float64 1.8446744073709552e+19, float64 1, float64 100, float64 2.5, "
        );
    }

    #[test]
    fn keys_come_in_their_order() {
        let data = json!({"b": 1, "ä": 2, "a": {"z": 1, "y": 2}, "B": 3});
        assert_eq!(
            rendered("{{range $k, $v := .}}{{$k}};{{end}}{{.}}", data),
            "B;a;b;ä;map[B:3 a:map[y:2 z:1] b:1 ä:2]"
        );
    }

    #[test]
    fn a_byte_that_is_no_text_becomes_a_replacement_character() {
        assert_eq!(
            rendered("[{{slice . 0 1}}][{{slice . 1 4}}]", json!("é世")),
            "[\u{fffd}][\u{fffd}\u{fffd}\u{fffd}]"
        );
    }

    #[test]
    fn a_template_invokes_itself_by_its_name() {
        let text = "{{.name}}{{range .in}}({{template `tree` .}}){{end}}";
        let data =
            json!({"name": "a", "in": [{"name": "b", "in": [{"name": "c"}]}, {"name": "d"}]});
        let template = Template::named("tree", text).unwrap();
        assert_eq!(template.render(&data).unwrap(), "a(b(c))(d)");
        assert!(refused(text, data).ends_with("template \"tree\" not defined"));
    }
}

mod an_error_says_where_it_is {
    use super::*;

    #[test]
    fn a_malformed_template_is_refused_before_it_is_rendered() {
        let parsed = |text| Template::named("card", text).unwrap_err().to_string();
        assert_eq!(parsed("a\n{{if .x}}\nb"), "template: card:3: unexpected EOF");
        assert_eq!(
            parsed("{{.x}}\n{{shout .x}}"),
            "template: card:2: function \"shout\" not defined"
        );
        assert_eq!(parsed("{{end}}"), "template: card:1: unexpected {{end}}");
        assert_eq!(parsed("{{\n.x"), "template: card:2: unclosed action started at card:1");
    }

    #[test]
    fn a_failing_action_is_named_with_line_and_column() {
        let text = "{{define \"row\"}}\n  {{.name.first}}{{end}}\n\n{{template \"row\" .}}";
        let error = Template::parse(text).unwrap().render(&json!({"name": "Ada"})).unwrap_err();
        let expected = "template: template:2:9: executing \"row\" at <.name.first>: \
                        can't evaluate field first in type interface {}";
        assert_eq!(error.to_string(), expected);
        let TemplateError::Execute { line, column, executing, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!((line, column, &*executing), (2, 9, "row"));
    }
}

mod a_template_ends_within_its_limits {
    use super::*;

    const OUTPUT: &str = "template: template: more than 1048576 bytes of output";
    const STEPS: &str = "template: template: more than 8388608 steps";

    #[test]
    fn a_template_that_is_too_long_is_refused() {
        let long = "x".repeat(1 << 20);
        assert_eq!(rendered(&long, Value::Null), long);
        assert_eq!(
            refused(&(long + "x"), Value::Null),
            "template: template: more than 1048576 bytes of template"
        );
    }

    #[test]
    fn parentheses_nest_only_so_deep() {
        let nested = |open: &str, close: &str, depth| {
            format!("{{{{print {}1{}}}}}", open.repeat(depth), close.repeat(depth))
        };
        assert_eq!(rendered(&nested("(", ")", 100), Value::Null), "1");
        assert_eq!(rendered(&nested("(print ", " | print)", 100), Value::Null), "1");
        let error = refused(&nested("(and 1 (print 2 ", ").x)", 50), Value::Null);
        assert!(error.ends_with("can't evaluate field x in type string"), "{error}");
        let too_deep = "template: template:1: max expression depth exceeded";
        for depth in [101, 1000, 100_000] {
            assert_eq!(refused(&nested("(", ")", depth), Value::Null), too_deep);
            assert_eq!(refused(&nested("(", "", depth), Value::Null), too_deep);
        }
    }

    #[test]
    fn blocks_nest_as_deep_as_a_template_is_long() {
        let nested = |open: &str, close: &str, depth| {
            format!("{}x{}", open.repeat(depth), close.repeat(depth))
        };
        assert_eq!(rendered(&nested("{{if 1}}", "{{end}}", 20_000), Value::Null), "x");
        assert_eq!(rendered(&nested("{{range 1}}", "{{end}}", 20_000), Value::Null), "x");
        assert_eq!(rendered(&nested("{{with 1}}", "{{else}}{{end}}", 20_000), Value::Null), "x");
        let chain = format!("{{{{if 0}}}}{}x{{{{end}}}}", "{{else if 0}}".repeat(20_000));
        assert_eq!(rendered(&chain, Value::Null), "");
        let mut blocks = String::new();
        (0..20_000).for_each(|it| blocks.push_str(&format!("{{{{block `{it}` .}}}}")));
        blocks.push('x');
        blocks.push_str(&"{{end}}".repeat(20_000));
        assert_eq!(rendered(&blocks, Value::Null), "x");
        let open = refused(&"{{if 1}}".repeat(20_000), Value::Null);
        assert_eq!(open, "template: template:1: unexpected EOF");
    }

    #[test]
    fn a_template_that_invokes_itself_for_ever_is_stopped() {
        let once = "{{define `a`}}{{if 1}}{{template `a` .}}{{end}}{{end}}{{template `a`}}";
        let error = refused(once, Value::Null);
        assert!(error.ends_with("exceeded maximum template depth (100000)"), "{error}");
        let mut doubling = String::from("{{define `0`}}{{end}}");
        for it in 1..64 {
            let before = it - 1;
            let call = format!("{{{{template `{before}`}}}}");
            doubling.push_str(&format!("{{{{define `{it}`}}}}{call}{call}{{{{end}}}}"));
        }
        assert_eq!(refused(&(doubling + "{{template `63`}}"), Value::Null), STEPS);
    }

    #[test]
    fn a_loop_over_a_huge_number_is_stopped() {
        assert_eq!(refused("{{range 1000000000}}{{end}}", Value::Null), STEPS);
        assert_eq!(refused("{{range .}}x{{end}}", json!(i64::MAX)), OUTPUT);
        assert_eq!(rendered("{{range 1000000000}}{{break}}{{end}}ok", Value::Null), "ok");
    }

    #[test]
    fn a_text_that_grows_without_end_is_stopped() {
        let double = "{{$x := `x`}}{{range 60}}{{$x = print $x $x}}{{end}}";
        assert_eq!(refused(double, Value::Null), OUTPUT);
        assert_eq!(refused("{{printf `%9999999d` 1}}", Value::Null), OUTPUT);
        assert_eq!(refused("{{printf `%.9999999f` 1.5}}", Value::Null), OUTPUT);
        assert_eq!(refused("{{printf `%.9999999x` 1.5}}", Value::Null), OUTPUT);
        assert_eq!(refused("{{printf `%.9999999U` 1}}", Value::Null), OUTPUT);
        assert_eq!(refused("{{range 9}}{{$x := printf `%999999d` 1}}{{end}}", Value::Null), STEPS);
        let keeping = "{{define `a`}}{{$x := printf `%99999d` 1}}{{template `a`}}{{end}}";
        assert_eq!(refused(&format!("{keeping}{{{{template `a`}}}}"), Value::Null), STEPS);
        assert_eq!(
            refused(
                "{{html (printf `%999999s` `<`) `<<<<<<<<<<<<<<<<`}}{{range 99}}{{html $}}{{end}}",
                json!("<".repeat(300_000))
            ),
            OUTPUT
        );
    }

    #[test]
    fn work_that_is_not_written_is_counted_too() {
        // So few turns that only what each of them has to read can use up the steps.
        let turns = |before: &str, body: &str, data: Value| {
            let text = format!("{before}{{{{range 1000}}}}{{{{{body}}}}}{{{{end}}}}");
            let limits = TemplateLimits { steps: 1 << 18, ..TemplateLimits::default() };
            Template::parse(&text)
                .unwrap()
                .render_within(limits, &data)
                .map_err(|it| it.to_string())
        };
        let steps = Err("template: template: more than 262144 steps".to_owned());
        let (short, long) = ("x".to_owned(), "x".repeat(100_000));
        for (text, expected) in [(short, Ok(String::new())), (long, steps.clone())] {
            let data = || json!({"a": text, "b": text, "f": format!("%{}d", text.replace('x', "+")), "m": {}});
            assert_eq!(turns("", "if ne $.a $.b}}{{end", data()), expected);
            assert_eq!(turns("", "if lt $.a $.b}}{{end", data()), expected);
            assert_eq!(turns("", "if index $.m $.a}}{{end", data()), expected);
            assert_eq!(turns("", "$x := printf `%.1s` $.a", data()), expected);
            assert_eq!(turns("", "$x := printf $.f 1", data()), expected);
            assert_eq!(turns("", &format!("if $.m.{text}}}}}{{{{end"), data()), expected);
        }
        let variables = "{{$v := 1}}".repeat(5000);
        assert_eq!(turns(&variables, "if 0}}{{end", Value::Null), Ok(String::new()));
        assert_eq!(turns(&variables, "if $}}{{end", Value::Null), steps);
    }

    #[test]
    fn data_that_nests_too_deep_is_refused() {
        let nested = |depth| (1..depth).fold(json!([]), |inner, _| json!([inner]));
        assert_eq!(rendered("{{.}}", nested(200)).len(), 400);
        assert_eq!(
            refused("{{.}}", nested(500)),
            "template: template: more than 200 lists and maps in each other"
        );
    }

    #[test]
    fn a_host_can_allow_less() {
        let template = Template::parse("{{range .}}{{.}}{{end}}").unwrap();
        let within = |output, steps| {
            template.render_within(TemplateLimits { output, steps }, &json!([1, 2, 3, 4]))
        };
        assert_eq!(within(4, 1000).unwrap(), "1234");
        let limit =
            |limit: &str| TemplateError::Limit { name: "template".into(), limit: limit.into() };
        assert_eq!(within(3, 1000).unwrap_err(), limit("3 bytes of output"));
        assert_eq!(within(4, 10).unwrap_err(), limit("10 steps"));
        assert_eq!(within(0, 0).unwrap_err(), limit("0 steps"));
    }
}
