//! Tests of the helpers of the rules; the rules themselves are tested through `check`.

use super::{body::prose, name::fold_look_alikes};

#[test]
fn names_that_look_alike_fold_to_the_same() {
    // Cyrillic letters, full width, capitals, and substitutes for a hyphen.
    for name in ["\u{440}df-reader", "\u{FF50}df-reader", "PDF-Reader", "pdf_reader", "pdf reader"]
    {
        assert_eq!(fold_look_alikes(name), "pdf-reader", "{name}");
    }
}

#[test]
fn names_that_differ_to_the_eye_do_not() {
    for name in ["pdf-readers", "pdfreader", "pdf--reader", "\u{43F}df-reader"] {
        assert_ne!(fold_look_alikes(name), "pdf-reader", "{name}");
    }
}

#[test]
fn prose_is_what_stands_outside_code() {
    let numbers = |text| prose(text).map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(numbers("a\n```sh\nb\n```\nc\n"), [0, 4]);
    assert_eq!(numbers("````\n```\nb\n````\nc\n"), [4]);
    assert_eq!(numbers("~~~\n```\n~~~\nc\n"), [3]);
    assert_eq!(numbers("a ``` b\nc\n"), [0, 1]);
    assert_eq!(numbers("```\nnever closed\n"), [0; 0]);
}
