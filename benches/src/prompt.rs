//! The number of tokens that a model reads for a request: everything, a list of everything, or what
//! fits.

use anyhow::Result;
use prowess::{
    Cataloging, Format, Level, Library, Matching, Message, Offer, Role, Thresholds, Tokenizer,
    block, catalog, choose,
};

use crate::{
    metrics::percentile,
    options::Options,
    pool::Pool,
    random::Random,
    retrieval::{Data, Request, id},
};

/// The sizes of installs, and the number of each: 200 requests per size.
const POOLS: &[(usize, usize)] = &[(50, 4), (500, 1), (5000, 1)];
/// The share of the window for the catalog.
const BUDGET: usize = 128_000 * 2 / 100;
const VOCABULARY: Tokenizer = Tokenizer::O200k;

/// Prints every table.
pub(crate) fn prompt(options: &Options<'_>) -> Result<()> {
    let data = Data::named(options)?;
    let mut random = Random::new(48);
    let sizes = POOLS.iter().filter(|it| it.0 <= data.skills.len());
    let sizes = sizes.map(|&(size, pools)| Size::measure(&data, size, pools, &mut random));
    let sizes = sizes.collect::<Result<Vec<Size>>>()?;
    print_tokens(&sizes);
    print_shown(&sizes);
    Ok(())
}

/// The prompts with installs of one size.
#[derive(Default)]
struct Size {
    skills: usize,
    pools: usize,
    /// Sums over the installs: every skill in full, every description, within the budget, and names
    /// within the budget.
    full: usize,
    descriptions: usize,
    catalog: Listed,
    names: Listed,
    /// The skills disclosed for each request that has a skill, and for each that has none.
    matched: Vec<Shown>,
    unmatched: Vec<Shown>,
}

/// Catalogs within a budget.
#[derive(Default)]
struct Listed {
    tokens: usize,
    skills: usize,
}

/// The skills disclosed for a request.
struct Shown {
    tokens: usize,
    /// The level of a right one.
    right: Option<Level>,
}

impl Size {
    fn measure(data: &Data, skills: usize, pools: usize, random: &mut Random) -> Result<Self> {
        let mut size = Self { skills, pools, ..Self::default() };
        for _ in 0..pools {
            let pool = Pool::draw(data, skills, random);
            let library = data.library(&pool.skills);
            for skill in library.skills() {
                let (name, description) = (&skill.manifest.name, &skill.manifest.description);
                size.full += VOCABULARY.count(&block(name, description, &skill.instructions()?));
            }
            let with = |format: Format, budget: Option<usize>| {
                let how =
                    Cataloging { format, budget, vocabulary: VOCABULARY, ..Cataloging::default() };
                catalog(&library, &how)
            };
            size.descriptions += with(Format::List, None).tokens;
            size.catalog.add(&with(Format::List, Some(BUDGET)));
            size.names.add(&with(Format::Names, Some(BUDGET)));
            for (requests, shown) in
                [(&pool.matched, &mut size.matched), (&pool.unmatched, &mut size.unmatched)]
            {
                for request in requests {
                    shown.push(Shown::new(&library, request)?);
                }
            }
        }
        Ok(size)
    }

    /// Returns the mean over the installs.
    fn mean(&self, sum: usize) -> f64 {
        sum as f64 / self.pools as f64
    }
}

impl Listed {
    fn add(&mut self, catalog: &prowess::Catalog) {
        self.tokens += catalog.tokens;
        self.skills += catalog.shown;
    }
}

impl Shown {
    fn new(library: &Library, request: &Request) -> Result<Self> {
        let history = [Message::new(Role::User, &request.query)];
        let choice = choose(library, &history, &Matching::default(), Thresholds::default());
        let mut shown = Self { tokens: 0, right: None };
        for chosen in &choice.skills {
            let offer = Offer::new(chosen)?;
            let content = offer.contents.first().map_or("", |it| &it.1);
            shown.tokens += VOCABULARY.count(&block(&offer.name, &offer.description, content));
            if request.gold.iter().any(|it| it == id(chosen.skill)) {
                shown.right = shown.right.max(Some(chosen.level));
            }
        }
        Ok(shown)
    }
}

fn print_tokens(sizes: &[Size]) {
    println!();
    println!(
        "| skills | all in full | all descriptions | names, ≤ {BUDGET} | catalog, ≤ {BUDGET} | \
         skills for a request: mean | p95 | catalog and skills | ÷ all in full | ÷ all descriptions |"
    );
    println!("|---:|{}", "---:|".repeat(9));
    for size in sizes {
        let shown = size.matched.iter().chain(&size.unmatched);
        let mut shown: Vec<f64> = shown.map(|it| it.tokens as f64).collect();
        shown.sort_unstable_by(f64::total_cmp);
        let mean = shown.iter().sum::<f64>() / shown.len() as f64;
        let [full, descriptions, names, catalog] =
            [size.full, size.descriptions, size.names.tokens, size.catalog.tokens]
                .map(|it| size.mean(it));
        let (all, p95) = (catalog + mean, percentile(&shown, 95));
        println!(
            "| {} | {full:.0} | {descriptions:.0} | {names:.0} | {catalog:.0} | {mean:.0} | \
             {p95:.0} | {all:.0} | {:.4} | {:.3} |",
            size.skills,
            all / full,
            all / descriptions,
        );
    }
}

fn print_shown(sizes: &[Size]) {
    println!();
    println!(
        "| skills | in the names | in the catalog | tokens where a skill is right | where none is | \
         the right one in full | brief | not shown |"
    );
    println!("|---:|{}", "---:|".repeat(7));
    for size in sizes {
        let mean = |shown: &[Shown]| {
            shown.iter().map(|it| it.tokens).sum::<usize>() as f64 / shown.len() as f64
        };
        let share = |level: Option<Level>| {
            let count = size.matched.iter().filter(|it| it.right == level).count();
            100.0 * count as f64 / size.matched.len() as f64
        };
        println!(
            "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} % | {:.0} % | {:.0} % |",
            size.skills,
            size.mean(size.names.skills),
            size.mean(size.catalog.skills),
            mean(&size.matched),
            mean(&size.unmatched),
            share(Some(Level::Full)),
            share(Some(Level::Brief)),
            share(None),
        );
    }
}
