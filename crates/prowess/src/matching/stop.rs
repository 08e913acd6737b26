//! Words that say nothing about what somebody wants.

/// Says whether a lower-case word, without its accents, is one of them.
pub(crate) fn is_stop(word: &str) -> bool {
    let (at, bit) = glance(word.as_bytes());
    GLANCES[at] & bit != 0 && STOP.binary_search(&word).is_ok()
}

/// Length, first and last letter of every stop word, as bits: few other words share all three.
const GLANCES: [u64; 64] = {
    let mut glances = [0; 64];
    let mut word = 0;
    while word < STOP.len() {
        let (at, bit) = glance(STOP[word].as_bytes());
        glances[at] |= bit;
        word += 1;
    }
    glances
};

/// Where the bit of a word stands.
const fn glance(word: &[u8]) -> (usize, u64) {
    let (Some(first), Some(last)) = (word.first(), word.last()) else { return (0, 0) };
    ((*first as usize + word.len() * 9) % 64, 1 << (*last % 64))
}

#[rustfmt::skip]
const STOP: [&str; 488] = [
    "a", "aan", "aber", "able", "about", "above", "after", "again", "against", "al", "all", "also",
    "am", "an", "anche", "and", "another", "any", "are", "aren", "around", "as", "at", "au", "auch",
    "auf", "aus", "aux", "avec", "back", "be", "because", "been", "before", "bei", "being", "below",
    "between", "bij", "bitte", "both", "but", "by", "can", "cannot", "ce", "ces", "cette", "che",
    "chi", "com", "come", "comment", "como", "con", "could", "couldn", "cuando", "da", "dans",
    "das", "dass", "dat", "de", "degli", "dei", "del", "della", "delle", "dello", "dem", "der",
    "des", "deze", "di", "did", "didn", "diese", "diesen", "dieser", "dieses", "dit", "do", "does",
    "doesn", "doing", "don", "donc", "donde", "dos", "dove", "down", "du", "during", "each", "een",
    "ein", "eine", "einem", "einen", "einer", "eines", "either", "el", "elle", "elles", "else",
    "em", "en", "es", "essa", "esse", "est", "esta", "estas", "este", "estos", "et", "eu", "even",
    "ever", "every", "faire", "fazer", "few", "for", "from", "fur", "further", "get", "gets",
    "getting", "give", "given", "gli", "go", "goes", "going", "gonna", "got", "habe", "haben",
    "hacer", "had", "hadn", "has", "hasn", "have", "haven", "having", "he", "hello", "help", "her",
    "here", "hers", "herself", "het", "hey", "hi", "him", "himself", "his", "hoe", "how", "i",
    "ich", "if", "ihr", "ik", "il", "ils", "im", "in", "into", "is", "isn", "isso", "ist", "isto",
    "it", "its", "itself", "ive", "je", "jij", "just", "kan", "kann", "kannst", "kindly", "know",
    "konnen", "la", "las", "le", "les", "let", "lets", "leur", "leurs", "like", "ll", "lo", "look",
    "los", "lot", "ma", "made", "mais", "make", "makes", "making", "many", "mas", "may", "maybe",
    "me", "mein", "meine", "meinen", "meiner", "mes", "meu", "meus", "mi", "mia", "mich", "mie",
    "miei", "might", "mijn", "mine", "minha", "minhas", "mio", "mir", "mis", "mit", "moet", "more",
    "most", "much", "must", "muy", "my", "myself", "na", "naar", "nach", "nas", "ne", "necesito",
    "need", "needed", "needs", "nei", "nel", "nella", "nelle", "nicht", "niet", "no", "noch", "non",
    "nor", "nos", "not", "nous", "now", "nur", "o", "oder", "of", "off", "ok", "okay", "on", "once",
    "onde", "one", "only", "onto", "ook", "or", "other", "ou", "our", "ours", "ourselves", "out",
    "over", "own", "par", "para", "pas", "per", "pero", "peut", "peux", "please", "plus", "por",
    "posso", "pour", "preciso", "puedes", "puedo", "quando", "que", "quel", "quelle", "quelles",
    "quels", "quero", "questa", "queste", "questi", "questo", "qui", "quiero", "re", "really", "s",
    "same", "se", "see", "she", "should", "shouldn", "sich", "sie", "so", "soll", "some", "someone",
    "something", "still", "su", "such", "sur", "sure", "sus", "t", "take", "tell", "than", "thank",
    "thanks", "that", "the", "their", "theirs", "them", "themselves", "then", "there", "these",
    "they", "thing", "things", "this", "those", "through", "thus", "to", "too", "try", "trying",
    "tu", "tus", "uber", "uma", "umas", "un", "una", "unas", "und", "under", "une", "uno", "unos",
    "uns", "until", "up", "upon", "us", "use", "used", "uses", "using", "van", "ve", "very", "via",
    "voce", "voglio", "vom", "von", "voor", "vorrei", "voudrais", "vous", "want", "wants", "was",
    "wasn", "wat", "way", "we", "well", "wenn", "werden", "were", "weren", "what", "whatever",
    "when", "where", "whether", "which", "while", "who", "whom", "whose", "why", "wie", "wij",
    "wil", "will", "wir", "wird", "wish", "with", "within", "without", "won", "would", "wouldn",
    "y", "yes", "yet", "you", "your", "yours", "yourself", "yourselves", "zij", "zu", "zum", "zur",
    "бы", "в", "вы", "для", "до", "его", "ее", "же", "за", "и", "из", "или", "их", "к", "как",
    "мне", "мой", "моя", "мы", "на", "надо", "не", "но", "нужно", "о", "он", "она", "от", "по",
    "пожалуйста", "с", "так", "ты", "у", "что", "это", "я",
];
