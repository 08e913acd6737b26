//! Words that are found in other spellings and forms.

use crate::matching::{found, library, library_of};

mod a_word_is_found_however_it_is_written {
    use super::*;

    #[test]
    fn q_07_q_10_the_words_of_a_request_are_looked_for_in_what_a_skill_says_about_itself() {
        let library = library_of(&[
            ("weave-baskets", "description: Makes things\n---\n"),
            ("second", "description: Sharpens a chisel\n---\n"),
            ("third", "description: Makes things\ntags: [carpentry]\n---\n"),
            ("fourth", "description: Makes things\n---\nStart with the dovetail.\n"),
            ("fifth", "description: Makes things\nwhen_to_use: when a hinge squeaks\n---\n"),
        ]);
        for (request, name) in [
            ("please help me with baskets", "weave-baskets"),
            ("my chisel", "second"),
            ("the carpentry of it", "third"),
            ("what is a dovetail?", "fourth"),
            ("it squeaks", "fifth"),
        ] {
            assert_eq!(found(&library, request), [name], "{request}");
        }
        assert_eq!(found(&library, "please help me with the"), [""; 0]);
    }

    #[test]
    fn case_and_accents_do_not_matter() {
        let library = library(&[
            ("menu", "Translates the menu of a café in Zürich"),
            ("other", "Does something else"),
        ]);
        for request in ["CAFE", "Café", "cafe\u{301}", "zurich", "ZÜRICH", "ｃａｆｅ"] {
            assert_eq!(found(&library, request), ["menu"], "{request}");
        }
    }

    #[test]
    fn words_that_are_joined_are_found_apart_and_together() {
        let library = library(&[
            ("a", "Builds a front-end"),
            ("b", "Moves a dataBase"),
            ("c", "Prefers snake_case"),
            ("d", "Writes a changelog"),
        ]);
        for (name, requests) in [
            ("a", ["front-end", "frontend", "front end", "frontEnd"]),
            ("b", ["database", "data base", "DataBase", "data-base"]),
            ("c", ["snake-case", "snakecase", "SnakeCase", "snake case"]),
            ("d", ["change-log", "changelog", "changeLog", "change_log"]),
        ] {
            for request in requests {
                assert_eq!(found(&library, request).first(), Some(&name), "{request}");
            }
        }
    }

    #[test]
    fn plurals_and_forms_of_verbs_are_one_word() {
        let library = library(&[("ship", "Deploys a query"), ("bus", "Boxes of a class stay")]);
        for request in ["deploying", "deployed", "deploy", "deployment", "queries", "Query's"] {
            assert_eq!(found(&library, request), ["ship"], "{request}");
        }
        for request in ["box", "classes", "the buses"] {
            assert_eq!(found(&library, request).len(), usize::from(request != "the buses"));
        }
    }

    #[test]
    fn a_short_form_finds_the_long_one() {
        let library = library(&[
            ("a", "Runs kubernetes"),
            ("b", "Cleans a database"),
            ("c", "Adds internationalization"),
            ("d", "Tidies a repo"),
            ("e", "Does nothing"),
        ]);
        for (request, name) in
            [("k8s", "a"), ("DB", "b"), ("dbs", "b"), ("i18n", "c"), ("repository", "d")]
        {
            assert_eq!(found(&library, request), [name], "{request}");
        }
    }

    #[test]
    fn digits_and_signs_that_make_a_name_stay() {
        let library = library(&[
            ("one", "Compiles C++ programs"),
            ("two", "Compiles C# programs"),
            ("three", "Compiles C programs"),
            ("four", "Compiles Python 3 programs"),
            ("five", "Uploads to S3"),
        ]);
        for (request, name) in
            [("c++", "one"), ("C#", "two"), ("in C.", "three"), ("python3", "four"), ("s3", "five")]
        {
            assert_eq!(found(&library, request).first(), Some(&name), "{request}");
        }
    }

    #[test]
    fn languages_without_spaces_are_found() {
        let library = library(&[
            ("chinese", "将应用部署到测试环境并检查日志"),
            ("japanese", "ステージング環境へアプリをデプロイする手順"),
            ("korean", "스테이징 환경에 애플리케이션을 배포합니다"),
            ("thai", "ปรับใช้แอปพลิเคชันไปยังสภาพแวดล้อมทดสอบ"),
            ("english", "Deploys to staging"),
        ]);
        for (request, name) in [
            ("请帮我部署应用", "chinese"),
            ("デプロイの手順を教えて", "japanese"),
            ("스테이징에 배포해 줘", "korean"),
            ("ช่วยปรับใช้แอปพลิเคชัน", "thai"),
        ] {
            assert_eq!(found(&library, request).first(), Some(&name), "{request}");
        }
    }

    #[test]
    fn a_slip_of_the_keyboard_in_a_name_is_forgiven() {
        let library = library(&[
            ("kubernetes-rollout", "Rolls out"),
            ("pdf-forms", "Fills in"),
            ("other", "Does something else"),
        ]);
        for request in ["kubernets", "kubernetess", "kubernetis", "kuberentes", "rolout now"] {
            assert_eq!(found(&library, request), ["kubernetes-rollout"], "{request}");
        }
        for request in ["kubrnets", "pdg"] {
            assert_eq!(found(&library, request), [""; 0], "{request}");
        }
    }
}

mod a_skill_is_found_by_everyday_words {
    use super::*;
    use prowess::matches;

    #[test]
    fn what_people_say_finds_what_skills_call_it() {
        let library = library(&[
            ("office", "Reads and writes .pptx files"),
            ("ship", "Deploys a project and prints its address"),
            ("cutout", "Removes image backgrounds"),
            ("roles", "Audits the permissions of every account"),
            ("other", "Sharpens a chisel"),
        ]);
        for (request, name) in [
            ("make me a powerpoint", "office"),
            ("a slide deck for monday", "office"),
            ("put my new site online", "ship"),
            ("cut the background off this picture", "cutout"),
            ("who has access to what?", "roles"),
        ] {
            assert_eq!(found(&library, request).first(), Some(&name), "{request}");
        }
    }

    #[test]
    fn the_word_itself_counts_more_than_another_for_it() {
        let (said, meant) = ("Makes a deck", "Makes a presentation");
        for (first, second) in [(said, meant), (meant, said)] {
            let library = library(&[("a", first), ("b", second)]);
            let own = if first == said { "a" } else { "b" };
            let found = found(&library, "a deck");
            assert_eq!(found.first(), Some(&own));
            assert_eq!(found.len(), 2);
        }
    }

    #[test]
    fn twenty_everyday_requests_find_the_right_skill_of_twelve() {
        let library = library(&[
            (
                "pptx",
                "Create, edit and read presentations and slide decks (.pptx files), with notes and charts",
            ),
            (
                "docx",
                "Create and edit Word documents (.docx): reports, letters, tracked changes, comments",
            ),
            (
                "xlsx",
                "Work with spreadsheets (.xlsx, .csv): formulas, cleaning of data, charts, totals",
            ),
            ("pdf", "Merge, split, fill in and extract text and tables from PDF files"),
            ("posters", "Design posters and other still art as .png or .pdf"),
            ("style-pages", "Apply a theme with fonts and colours to slides, documents and pages"),
            (
                "hunt-bugs",
                "Use when a bug, test failure or unexpected behaviour shows up, before proposing a fix",
            ),
            (
                "tests-first",
                "Use before implementing a feature or bugfix: write the test, then the code",
            ),
            ("ask-for-review", "Use before merging, to get a review of the changes of a branch"),
            ("go-live", "Deploy applications and websites to hosting and return the link"),
            (
                "page-design",
                "Build distinctive web pages and user interfaces with care for typography and layout",
            ),
            ("inclusive-pages", "Audit pages for accessibility and usability guidelines"),
        ]);
        for (request, name) in [
            ("make a slide deck", "pptx"),
            ("create a powerpoint about our roadmap", "pptx"),
            ("speaker notes for my talk", "pptx"),
            ("turn this into a word file", "docx"),
            ("write a letter to the landlord", "docx"),
            ("sum up my expenses in excel", "xlsx"),
            ("clean up this csv", "xlsx"),
            ("combine these scans into one pdf", "pdf"),
            ("fill out the form", "pdf"),
            ("a flyer for the summer party", "posters"),
            ("my tests are failing", "hunt-bugs"),
            ("fix this bug", "hunt-bugs"),
            ("the program crashes and I don't know why", "hunt-bugs"),
            ("the test suite fails on CI", "hunt-bugs"),
            ("write the test before the code", "tests-first"),
            ("review my pull request", "ask-for-review"),
            ("put my site online", "go-live"),
            ("make a website", "page-design"),
            ("make the landing page look nicer", "page-design"),
            ("is my website accessible?", "inclusive-pages"),
        ] {
            assert_eq!(found(&library, request).first(), Some(&name), "{request}");
        }
    }

    #[test]
    fn a_word_with_another_meaning_elsewhere_finds_nothing_by_it() {
        let library = library(&[
            ("hunt-bugs", "Use when a bug, test failure or unexpected behaviour shows up"),
            ("go-live", "Deploy applications and websites to hosting and return the link"),
            ("model-api", "Reference for the API of a language model: prices, streaming, tools"),
            ("worktrees", "Isolate feature work in git worktrees"),
        ]);
        for request in ["write a haiku", "plan a birthday for my son", "how is the weather?"] {
            let best = matches(&library, request, 1).first().map_or(0.0, |it| it.confidence);
            assert!(best < 0.5, "{request}: {best}");
        }
    }
}

mod a_request_in_another_language_finds_english_skills {
    use super::*;

    #[test]
    fn what_people_say_in_their_language_finds_what_english_skills_call_it() {
        let library = library(&[
            ("decks", "Create and edit presentations and slides"),
            ("sheets", "Work with spreadsheets: formulas, cleaning of data, charts"),
            ("papers", "Merge, split and fill in PDF files, extract text from scans"),
            ("stills", "Design posters and other still art"),
            ("go-live", "Deploy applications and websites to hosting"),
            ("hunt-bugs", "Use when a bug or unexpected behaviour shows up, for debugging"),
            ("guard", "Find security vulnerabilities in code"),
            ("tongues", "Translate texts and check the translation"),
            ("posts", "Write articles and blog posts"),
            ("tables", "Design a database and write SQL queries"),
            ("budgets", "Invoices, taxes and accounting for small companies"),
            ("films", "Cut videos and add subtitles"),
        ]);
        for (request, name) in [
            ("أنشئ عرض تقديمي", "decks"),
            ("ابحث عن الثغرات", "guard"),
            ("帮我做一个演示文稿", "decks"),
            ("把网站部署上线", "go-live"),
            ("给视频加字幕", "films"),
            ("maak een affiche", "stills"),
            ("zoek kwetsbaarheden in mijn broncode", "guard"),
            ("traduis cette lettre", "tongues"),
            ("une affiche pour la fête", "stills"),
            ("Baue mir eine Datenbank", "tables"),
            ("Plakat für das Sommerfest", "stills"),
            ("stell meine Internetseite online", "go-live"),
            ("मेरी वेबसाइट प्रकाशित करें", "go-live"),
            ("prepara le diapositive", "decks"),
            ("aggiungi i sottotitoli al filmato", "films"),
            ("ポスターを作って", "stills"),
            ("データベースを設計したい", "tables"),
            ("보안 취약점을 찾아 주세요", "guard"),
            ("슬라이드 만들어 줘", "decks"),
            ("zrób prezentację o kotach", "decks"),
            ("przetłumacz ten list", "tongues"),
            ("escreva um artigo", "posts"),
            ("faça uma planilha", "sheets"),
            ("сделай презентацию", "decks"),
            ("найди уязвимости", "guard"),
            ("добавь субтитры к видео", "films"),
            ("publica mi página web", "go-live"),
            ("traduce este texto", "tongues"),
            ("una factura para mi cliente", "budgets"),
            ("web sitemi yayınla", "go-live"),
            ("bir sunum hazırla", "decks"),
            ("зроби таблицю", "sheets"),
            ("напиши допис", "posts"),
        ] {
            assert_eq!(found(&library, request).first(), Some(&name), "{request}");
        }
    }

    #[test]
    fn a_word_that_is_also_english_keeps_its_english_meaning() {
        let library = library(&[
            ("rooms", "Runs a chat with many rooms"),
            ("marks", "Explains the brand of a company"),
            ("buttons", "Lists the actions of a menu"),
            ("cats", "Feeds the cat and trades stocks"),
        ]);
        for (request, name) in [("chat", "rooms"), ("our brand", "marks"), ("actions", "buttons")] {
            assert_eq!(found(&library, request).first(), Some(&name), "{request}");
        }
    }
}

mod a_skill_is_found_in_the_language_that_it_is_written_in {
    use super::*;

    /// Skills, one a line, with requests that each should answer under it.
    const LANGUAGES: [(&str, &str); 18] = [
        ("arabic", include_str!("languages/arabic.txt")),
        ("chinese-simplified", include_str!("languages/chinese-simplified.txt")),
        ("chinese-traditional", include_str!("languages/chinese-traditional.txt")),
        ("dutch", include_str!("languages/dutch.txt")),
        ("french", include_str!("languages/french.txt")),
        ("german", include_str!("languages/german.txt")),
        ("hindi", include_str!("languages/hindi.txt")),
        ("italian", include_str!("languages/italian.txt")),
        ("japanese", include_str!("languages/japanese.txt")),
        ("korean", include_str!("languages/korean.txt")),
        ("polish", include_str!("languages/polish.txt")),
        ("portuguese", include_str!("languages/portuguese.txt")),
        ("russian", include_str!("languages/russian.txt")),
        ("spanish", include_str!("languages/spanish.txt")),
        ("thai", include_str!("languages/thai.txt")),
        ("turkish", include_str!("languages/turkish.txt")),
        ("ukrainian", include_str!("languages/ukrainian.txt")),
        ("vietnamese", include_str!("languages/vietnamese.txt")),
    ];

    /// The requests that do not find their skill first, and how many there are.
    fn missed(text: &str) -> (Vec<String>, usize) {
        let skills = text.lines().filter_map(|it| it.split_once(": "));
        let skills: Vec<_> = skills.filter(|it| !it.0.starts_with('?')).collect();
        let library = library(&skills);
        let (mut name, mut missed, mut all) = ("", Vec::new(), 0);
        for line in text.lines() {
            let Some(request) = line.strip_prefix("? ") else {
                name = line.split_once(": ").unwrap().0;
                continue;
            };
            all += 1;
            let found = found(&library, request);
            if found.first() != Some(&name) {
                missed.push(format!("{request}: {found:?}, not {name}"));
            }
        }
        (missed, all)
    }

    #[test]
    fn a_request_finds_the_skill_of_its_language() {
        for (language, text) in LANGUAGES {
            let (missed, all) = missed(text);
            assert!(all >= 15, "{language}");
            assert!(missed.len() <= 1, "{language}: {missed:#?}");
        }
    }

    #[test]
    fn terms_of_the_trade_are_found_in_a_request_of_another_language() {
        let (missed, all) = missed(include_str!("languages/mixed.txt"));
        assert!(all >= 20);
        assert_eq!(missed, [""; 0]);
    }

    #[test]
    fn letters_that_are_written_in_several_ways_are_one() {
        for (said, asked) in [
            ("Straße", "STRASSE"),
            ("перелёт", "перелет"),
            ("satır", "SATIR"),
            ("İLAN", "ilan"),
            ("płatność", "platnosc"),
            ("الأرقام", "ارقام"),
            ("رسالة", "رســـالة"),
            ("مُحَمَّد", "محمد"),
            ("साफ़", "साफ"),
            ("バグ", "ﾊﾞｸﾞ"),
            ("サーバー", "サーバ"),
            ("ＰＤＦ", "pdf"),
            ("資料庫", "资料库"),
            ("Verträge", "vertraege"),
            ("Zusammen\u{AD}fassung", "Zusammenfassung"),
            ("hoá đơn", "HÓA ĐƠN"),
        ] {
            let library = library(&[("one", said), ("two", "Something else")]);
            assert_eq!(found(&library, asked), ["one"], "{asked}");
        }
    }

    #[test]
    fn vowel_signs_make_another_word() {
        let library = library(&[
            ("day", "दिन"),
            ("gift", "दान"),
            ("rice", "ข้าว"),
            ("white", "ขาว"),
            ("news", "ข่าว"),
        ]);
        for (request, name) in
            [("दिन", "day"), ("दान", "gift"), ("ข้าว", "rice"), ("ขาว", "white"), ("ข่าว", "news")]
        {
            assert_eq!(found(&library, request).first(), Some(&name), "{request}");
        }
        assert_eq!(found(&library, "दान"), ["gift"]);
    }

    #[test]
    fn what_follows_an_apostrophe_is_a_word_where_it_is_long() {
        let library = library(&[
            ("a", "I conti dell'azienda"),
            ("b", "Le prix de l’hôtel"),
            ("c", "Знайде п'ять"),
            ("d", "Reads GitHub's pages"),
        ]);
        for (request, names) in [
            ("azienda", &["a"][..]),
            ("hotel", &["b"]),
            ("п’ять", &["c"]),
            ("ять", &[]),
            ("github", &["d"]),
            ("'s s", &[]),
        ] {
            assert_eq!(found(&library, request), names, "{request}");
        }
    }

    #[test]
    fn a_joined_word_finds_its_parts() {
        let library = library(&[
            ("a", "Prüft Datenbanken"),
            ("b", "Macht eine Sicherung"),
            ("c", "Backt Brot"),
        ]);
        let mut both = found(&library, "Datenbanksicherung");
        both.sort_unstable();
        assert_eq!(both, ["a", "b"]);
        assert_eq!(found(&library, "Datenbankmonitor"), ["a"]);
        assert_eq!(found(&library, "Brotmaschine"), [""; 0]);
    }

    #[test]
    fn english_words_that_look_like_others_with_an_ending_stay_apart() {
        let library = library(&[("a", "Takes a hop"), ("b", "It is fun"), ("c", "Implements it")]);
        for request in ["hopper", "funny", "implant"] {
            assert_eq!(found(&library, request), [""; 0], "{request}");
        }
        assert_eq!(found(&library, "hopping"), ["a"]);
    }
}
