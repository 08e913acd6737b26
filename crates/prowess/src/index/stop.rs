//! Stop words: words that say nothing about the request.
//!
//! A language that requests are understood in is here, in `endings.rs`, in `lexicon/` (one file,
//! packed by `prowess-benches lexicon`), and in `WHEN` of `check/validate/guidance.rs`. Words are
//! written without accents, as `fold` returns them, and sorted.

/// Returns whether a folded lower-case word is one of them. So are single letters and short
/// numbers, except for two that are programming languages.
pub(crate) fn is_stop(word: &str) -> bool {
    let is_letter = word.len() == 1 && !matches!(word, "c" | "r");
    let is_number = word.len() <= 2 && word.bytes().all(|it| it.is_ascii_digit());
    let (at, bit) = filter_bit(word.as_bytes());
    let is_listed = GLANCES[at] & bit != 0 && STOP.binary_search(&word).is_ok();
    is_letter || is_number || is_listed
}

/// Length, first and last letter of every stop word, as bits: few other words share all three.
const GLANCES: [u64; 64] = {
    let mut glances = [0; 64];
    let mut word = 0;
    while word < STOP.len() {
        let (at, bit) = filter_bit(STOP[word].as_bytes());
        glances[at] |= bit;
        word += 1;
    }
    glances
};

/// Returns the position of a word's bit.
const fn filter_bit(word: &[u8]) -> (usize, u64) {
    let (Some(first), Some(last)) = (word.first(), word.last()) else { return (0, 0) };
    ((*first as usize + word.len() * 9) % 64, 1 << (*last % 64))
}

#[rustfmt::skip]
static STOP: &[&str] = &[
    "a", "aan", "aber", "able", "about", "above", "after", "again", "against", "agli", "aimerais",
    "aimerait", "al", "algum", "alguma", "algun", "alguna", "alguno", "all", "alle", "alles",
    "alors", "als", "alsjeblieft", "also", "alsof", "alstublieft", "am", "an", "anche", "and",
    "another", "antes", "any", "anybody", "anyone", "apres", "aquel", "aquele", "are", "aren",
    "around", "as", "at", "au", "aub", "auch", "auf", "aujourd", "aujourdhui", "aus", "aussi",
    "aux", "avant", "avec", "avez", "avoir", "avons", "back", "bana", "bardzo", "be", "because",
    "bedankt", "been", "before", "bei", "beim", "being", "below", "benim", "between", "bij", "bir",
    "bist", "bitte", "bize", "bizim", "both", "brauche", "brauchen", "bunu", "but", "by", "byl",
    "byla", "bylo", "can", "cannot", "ce", "celle", "celles", "celui", "ces", "cet", "cette",
    "ceux", "chaque", "chce", "chcemy", "chcialabym", "chcialbym", "che", "chez", "chi", "cho",
    "chung", "cok", "com", "come", "comme", "comment", "como", "con", "could", "couldn", "cua",
    "cual", "cuales", "cuando", "cuanto", "czy", "da", "daha", "dalla", "dallo", "damit", "danke",
    "dann", "dans", "darf", "das", "dass", "dat", "de", "debemos", "debo", "degli", "dei", "dein",
    "deine", "deinem", "deinen", "deiner", "del", "dela", "dele", "deles", "della", "delle",
    "dello", "dem", "den", "denn", "depuis", "der", "des", "desde", "devo", "devons", "deze", "di",
    "dich", "did", "didn", "die", "diese", "diesem", "diesen", "dieser", "dieses", "dit", "dla",
    "dlaczego", "do", "dobbiamo", "doch", "does", "doesn", "doing", "dois", "doit", "don", "donc",
    "donde", "dont", "dopo", "dort", "dos", "dove", "down", "du", "duoc", "durch", "durfen",
    "during", "dziekuje", "each", "echt", "een", "eens", "ein", "eine", "einem", "einen", "einer",
    "eines", "either", "el", "ela", "elas", "ele", "eles", "ella", "ellas", "elle", "elles",
    "ellos", "else", "em", "en", "eres", "es", "esa", "esas", "ese", "eso", "esos", "essa", "essas",
    "esse", "esses", "est", "esta", "estamos", "estan", "estao", "estas", "este", "estos", "estou",
    "estoy", "et", "etait", "etes", "etwas", "eu", "euch", "euer", "eure", "even", "ever", "every",
    "everybody", "everyone", "faca", "facciamo", "fai", "faire", "fais", "fait", "faites", "faut",
    "favore", "faz", "fazer", "few", "for", "from", "fur", "further", "gdzie", "geef", "gegen",
    "geht", "gerek", "gerne", "get", "gets", "getting", "gibi", "gibt", "giup", "give", "given",
    "gli", "go", "goes", "going", "gonna", "gostaria", "gostariamos", "got", "graag", "gracias",
    "grazie", "habe", "haben", "hace", "hacemos", "hacer", "had", "hadn", "hangi", "has", "hasn",
    "hasta", "hatte", "hatten", "have", "haven", "having", "haz", "hazme", "he", "heb", "hebben",
    "hebt", "heeft", "heel", "helfen", "hello", "help", "hepsi", "her", "here", "hers", "herself",
    "het", "heute", "hey", "hi", "hier", "hilf", "hilfe", "him", "himself", "hinter", "his", "hoe",
    "how", "hun", "i", "ich", "icin", "if", "ihr", "ihre", "ihrem", "ihren", "ihrer", "ik", "il",
    "ile", "ils", "im", "in", "into", "is", "isn", "isso", "ist", "isterim", "istiyorum",
    "istiyoruz", "isto", "it", "its", "itself", "ive", "jak", "jaka", "jaki", "jakie", "je", "jede",
    "jeden", "jeder", "jedes", "jego", "jej", "jetzt", "jij", "jou", "jouw", "jullie", "jusqu",
    "just", "juz", "kadar", "kan", "kann", "kannst", "khong", "kia", "kiedy", "kindly", "know",
    "konnen", "konnte", "konntest", "kto", "ktora", "ktore", "ktory", "kun", "kunnen", "kunt", "la",
    "las", "lazim", "le", "les", "let", "lets", "leur", "leurs", "like", "ll", "lo", "look",
    "lorsqu", "los", "lot", "lub", "lui", "lutfen", "ma", "maak", "maakt", "maar", "mache",
    "machen", "macht", "made", "mais", "maken", "makes", "many", "mas", "may", "maybe", "me",
    "meer", "mehr", "mein", "meine", "meinem", "meinen", "meiner", "merci", "mes", "meu", "meus",
    "mi", "mia", "mich", "mie", "miei", "might", "mijn", "mine", "minha", "minhas", "mio", "mir",
    "mis", "misin", "misiniz", "mit", "mnie", "mochte", "mochten", "moet", "moeten", "moge",
    "mogest", "moich", "moim", "moimi", "moj", "moja", "moje", "mojego", "mojej", "molto", "mon",
    "more", "most", "moze", "mozesz", "much", "muito", "muon", "musimy", "muss", "mussen", "must",
    "musun", "musze", "muy", "my", "myself", "na", "naar", "nach", "nao", "nas", "nasil", "nasz",
    "nasza", "nasze", "ne", "neben", "necesito", "neden", "need", "needed", "needs", "nei", "nel",
    "nell", "nella", "nelle", "nello", "nerede", "nhe", "nhu", "nhung", "nicht", "nichts", "nie",
    "niet", "no", "noch", "nog", "noi", "non", "nor", "nos", "nosotros", "nossa", "nossas", "nosso",
    "nossos", "nostra", "nostri", "nostro", "not", "notre", "nous", "now", "nuestra", "nuestras",
    "nuestro", "nuestros", "nur", "o", "obrigada", "obrigado", "oder", "of", "off", "ohne", "ok",
    "okay", "olan", "olarak", "omdat", "on", "once", "onde", "onder", "one", "oni", "onlar", "only",
    "onto", "onze", "ook", "or", "oraz", "other", "ou", "our", "ours", "ourselves", "out", "over",
    "own", "par", "para", "pas", "pela", "pelas", "pelo", "pelos", "per", "perche", "pero", "peut",
    "peux", "plait", "please", "plus", "pode", "podem", "podemos", "poderia", "podria", "podrias",
    "por", "porque", "possiamo", "posso", "potete", "potresti", "pour", "pourquoi", "pourrais",
    "pourriez", "pouvez", "pouvoir", "preciso", "prosze", "przed", "przez", "puede", "pueden",
    "puedes", "puedo", "puisqu", "puo", "puoi", "qu", "quais", "qual", "qualche", "quale", "quali",
    "quand", "quando", "que", "quel", "quelle", "quelles", "quels", "quem", "quer", "queremos",
    "quero", "questa", "queste", "questi", "questo", "qui", "quien", "quiere", "quieres", "quiero",
    "quisiera", "quisieramos", "quoi", "re", "really", "s", "same", "schon",
    "se", "see", "segun", "sehr", "seid", "sein", "seine", "seinen", "seiner", "seit", "senin",
    "senza", "seu", "seus", "she", "should", "shouldn", "siamo", "sich", "sie", "siete", "sind",
    "sizin", "so", "sobre", "soll", "sollen", "sollte", "some", "somebody", "someone", "something",
    "sommes", "somos", "sono", "sont", "sou", "staat", "still", "su", "sua", "suas", "such", "suis",
    "sulla", "sulle", "sullo", "sunu", "suo", "suoi", "sur", "sure", "sus", "t", "take", "tambem",
    "tambien", "tegen", "tego", "tej", "tell", "tem", "temos", "tenemos", "tengo", "tenho", "tes",
    "tesekkurler", "than", "thank", "thanks", "that", "the", "their", "theirs", "them",
    "themselves", "then", "there", "these", "they", "thing", "things", "this", "those", "three",
    "through", "thus", "tiene", "tienen", "tijdens", "to", "toch", "toi", "ton", "too", "tous",
    "tout", "toute", "toutes", "try", "trying", "tu", "tus", "tussen", "two", "tych", "tylko",
    "tym", "uber", "uit", "um", "uma", "umas", "un", "una", "unas", "und", "under", "une", "uno",
    "unos", "uns", "unser", "unsere", "unserem", "unseren", "unserer", "unseres", "unter", "until",
    "up", "upon", "us", "use", "used", "uses", "using", "usted", "ustedes", "uw", "vamos", "van",
    "ve", "veel", "very", "veut", "veux", "veya", "via", "viel", "viele", "vielen", "voce", "voces",
    "vogliamo", "voglio", "voi", "vom", "von", "voor", "vor", "vorrei", "vorremmo", "vos", "vostro",
    "votre", "voudrais", "voudrait", "voulez", "vous", "voy", "vui", "vuoi", "waar", "waarom",
    "wahrend", "wann", "wanneer", "want", "wants", "warum", "was", "wasn", "wat", "way", "we",
    "weil", "wel", "welche", "welchen", "welcher", "welches", "welk", "welke", "well", "wenn",
    "wer", "werden", "were", "weren", "what", "whatever", "when", "where", "whether", "which",
    "while", "who", "whom", "whose", "why", "wie", "wij", "wil", "wilde", "will", "willen", "wilt",
    "wir", "wird", "wish", "with", "within", "without", "won", "wordt", "would", "wouldn", "wurde",
    "wurden", "wurdest", "xin", "y", "yes", "yet", "yo", "yok", "you", "your", "yours", "yourself",
    "yourselves", "zij", "zijn", "zonder", "zou", "zouden", "zu", "zum", "zur", "zwischen", "а",
    "або", "але", "без", "був", "будь", "була", "були", "бы", "был", "была", "были", "было", "быть",
    "в", "вам", "вас", "ваш", "ваша", "весь", "вже", "ви", "во", "вона", "вони", "воно", "вот",
    "все", "всех", "вся", "вы", "від", "він", "где", "да", "де", "делать", "для", "до", "допоможи",
    "дякую", "его", "ее", "если", "еще", "же", "з", "за", "зачем", "зі", "и", "из", "или", "им",
    "ими", "иого", "их", "к", "как", "какая", "какие", "какое", "какои", "ко", "когда", "коли",
    "кто", "куда", "ласка", "ли", "между", "мене", "меня", "мені", "мне", "мнои", "мого", "могу",
    "мое", "моего", "моеи", "моему", "может", "можете", "можеш", "можешь", "можна", "можно", "можу",
    "мои", "моя", "моє", "моємі", "моі", "моіи", "мы", "між", "на", "над", "надо", "нам", "нас",
    "наш", "наша", "наше", "наши", "наші", "не", "него", "нее", "неи", "нем", "нет", "них", "но",
    "ну", "нужен", "нужна", "нужно", "нужны", "ні", "о", "об", "он", "она", "они", "оно", "от",
    "перед", "по", "под", "пожалуиста", "помоги", "помогите", "после", "потому", "потрібен",
    "потрібна", "потрібно", "почему", "при", "про", "прошу", "під", "після", "с", "сделаи",
    "сделать", "со", "спасибо", "та", "так", "также", "також", "твои", "те", "тебе", "тебя", "ти",
    "то", "того", "тоже", "тои", "только", "тот", "треба", "ты", "тільки", "у", "уже", "усі",
    "хотел", "хотела", "хотим", "хочемо", "хочу", "хто", "це", "цеи", "цього", "цьому", "ця", "ці",
    "ціи", "через", "чи", "чому", "что", "чтобы", "ще", "що", "щоб", "эта", "эти", "это", "этого",
    "этои", "этом", "этому", "этот", "я", "як", "яка", "яке", "якии", "якщо", "які", "є", "і", "із",
    "іх", "іі", "احتاج", "ارجو", "اريد", "التي", "الذي", "الي", "ان", "انا", "انت", "او", "اين",
    "بعض", "بهذا", "بهذه", "تلك", "ثم", "جدا", "ذلك", "رجاء", "سمحت", "شكرا", "علي", "عليه",
    "عليها", "عن", "غير", "فضلك", "في", "فيه", "فيها", "كان", "كل", "كيف", "لك", "لماذا", "لنا",
    "له", "لها", "لهذا", "لهذه", "لو", "لي", "ما", "ماذا", "متي", "مع", "من", "منه", "منها",
    "نحتاج", "نحن", "نريد", "هذا", "هذه", "هذي", "هل", "هم", "هو", "هي", "يمكن", "يمكنك", "يمكنني",
    "आप", "आपका", "आपकी", "इन", "इस", "इसका", "इसकी", "इसके", "इसे", "उन", "उस", "उसे", "एक", "और",
    "कब", "कर", "करता", "करती", "करते", "करना", "करें", "करो", "कहां", "का", "किसी", "की", "कीजिए",
    "कुछ", "कृपया", "के", "कैसे", "को", "कोई", "कौन", "क्या", "क्यों", "गई", "गए", "गया", "चाहता",
    "चाहती", "चाहिए", "जाता", "जाना", "तुम", "तो", "था", "थी", "थे", "दीजिए", "देता", "देना", "दो",
    "न", "नहीं", "ने", "पर", "बहुत", "भी", "मुझे", "में", "मेरा", "मेरी", "मेरे", "मैं", "यह", "या",
    "ये", "लिए", "वह", "वाला", "वाली", "वाले", "वे", "साथ", "से", "हम", "हमारा", "हमारी", "हमारे",
    "हमें", "ही", "है", "हैं", "हो", "あの", "ある", "い", "いい", "いた", "いで", "いま", "いる", "う", "うす", "うや",
    "えま", "お", "か", "から", "が", "きま", "く", "くだ", "くれ", "けど", "けま", "けれ", "こで", "この", "これ", "ご", "さい",
    "し", "しい", "した", "して", "しま", "しょ", "す", "すか", "する", "すれ", "せん", "その", "それ", "た", "たい", "ただ",
    "ため", "たら", "だけ", "ださ", "って", "つ", "て", "てい", "てほ", "ても", "で", "でき", "です", "では", "と", "との",
    "とは", "どう", "どこ", "な", "ない", "など", "なに", "に", "には", "の", "ので", "は", "ばい", "へ", "ほし", "まし", "ます",
    "ませ", "まで", "も", "もら", "や", "やっ", "よう", "ら", "らえ", "られ", "る", "れば", "れま", "れる", "を", "ん", "んか",
    "んだ", "んで", "一下", "一个", "一些", "一份", "一张", "一点", "不能", "与", "也", "了", "什么", "他", "他们", "他的", "你",
    "你们", "你的", "可以", "可否", "吗", "吧", "呢", "和", "哪个", "哪里", "在", "她", "好吗", "如何", "它", "就", "帮忙",
    "帮我", "很", "怎么", "怎样", "想要", "我", "我们", "我想", "我的", "我要", "或", "把", "是", "是否", "有", "有没", "没有",
    "的", "的话", "能不", "能否", "请", "请帮", "谢谢", "这个", "这些", "这份", "这篇", "那个", "那些", "都", "需要", "가", "것",
    "게하", "과", "그", "그것", "나요", "는", "는데", "니다", "도", "드립", "떻게", "로", "를", "립니", "부탁", "세요", "수",
    "수있", "습니", "실수", "싶어", "싶은", "어떻", "어요", "에", "에게", "에서", "와", "으로", "은", "은데", "을", "의", "이",
    "이것", "있나", "있는", "있어", "저", "저것", "좀", "주", "주세", "주실", "줘", "탁해", "하고", "하나", "하는", "하죠", "한",
    "한테", "할", "합니", "해", "해요", "해주", "해줘",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::fold::fold;

    #[test]
    fn the_words_are_sorted() {
        for pair in STOP.windows(2) {
            assert!(pair[0] < pair[1], "`{}` belongs before `{}`", pair[1], pair[0]);
        }
    }

    #[test]
    fn the_words_are_folded() {
        for word in STOP {
            let folded = fold(word);
            assert!(folded == *word, "`{word}` is never found: write `{folded}`");
        }
    }
}
