//! Studies how every skill performs against the others on requests in its own words.

use super::{
    Lab, NearDuplicates, Progress, advise::Advisor, can_be_matched, map_parallel, probe::probes,
};
use crate::read::skill::Skill;

/// The results of a study of a library.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Study<'lib> {
    /// Every skill that was studied, the worst first.
    pub skills: Vec<StudiedSkill<'lib>>,
    /// Near duplicates.
    pub families: Vec<NearDuplicates<'lib>>,
    /// The pairs with the most similar descriptions, the closest first: even if all is well, they
    /// are the next to get into each other's way.
    pub closest: Vec<NearDuplicates<'lib>>,
}

/// The results of a study of a skill.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StudiedSkill<'lib> {
    /// The skill.
    pub skill: &'lib Skill,
    /// Its performance.
    pub standing: ProbeStatus,
    /// The reason why it performs badly.
    pub because: Option<MissReason<'lib>>,
    /// The requests in its words, and their results.
    pub probes: Vec<Probe<'lib>>,
    /// The number of these requests that match it.
    pub won: usize,
    /// The skills that requests match instead, those that take most first.
    pub competitors: Vec<Competitor<'lib>>,
    /// Words that it shares with the first of these, the most informative first.
    pub shared: Vec<String>,
    /// Words of its instructions that describe no other skill, or hardly any if there are many; the
    /// most informative first.
    pub own: Vec<String>,
    /// Advice, in sentences.
    pub advice: Vec<String>,
}

/// The performance of a skill on requests in its own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProbeStatus {
    /// No request ranks it among the first three, or not with enough confidence.
    NeverFound,
    /// Most requests match another skill, or none.
    Contested,
    /// At least half of all requests match it.
    Found,
    /// Only a person can invoke it, so that no request matches it.
    ForPeople,
    /// It is shadowed by another skill of its name.
    Hidden,
    /// It is a draft, or disabled.
    NotInUse,
}

/// The reason why a skill performs badly.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum MissReason<'lib> {
    /// Its description is still the text of a template.
    Placeholder,
    /// Its description has no informative word.
    Wordless,
    /// It is a near duplicate of another skill, which is matched instead.
    Twin(&'lib Skill),
    /// Its description spells out the name of another skill, which is matched by that.
    Names(&'lib Skill),
    /// Its description has only this many informative words.
    Short(usize),
    /// Every word of its description occurs in this many other skills, or more.
    Common(usize),
    /// One skill takes most of what it loses.
    Shadowed(&'lib Skill),
    /// This many skills take its requests.
    Crowded(usize),
    /// No skill takes its requests, but its confidence is never higher than this.
    Unsure(f64),
}

/// A request in the words of a skill, and its result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Probe<'lib> {
    /// The request.
    pub request: String,
    /// The rank of the skill, from 1; `None` if it is not found.
    pub rank: Option<usize>,
    /// Its confidence.
    pub confidence: f64,
    /// The skill that ranks first, and its confidence.
    pub first: Option<(&'lib Skill, f64)>,
}

/// A skill that matches requests meant for another.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Competitor<'lib> {
    /// The skill.
    pub skill: &'lib Skill,
    /// The number of requests that it takes.
    pub takes: usize,
    /// Its mean lead in confidence.
    pub lead: f64,
}

/// The maximum rank at which a skill counts as found.
const FOUND_WITHIN: usize = 3;

impl<'lib> Lab<'lib> {
    /// Studies every `wanted` skill with requests in its own words.
    pub fn study(&self, progress: Progress<'_>, wanted: impl Fn(&Skill) -> bool) -> Study<'lib> {
        let families = self.families();
        let advisor = Advisor::new(self, &families);
        let skills: Vec<&Skill> = self.library.all().filter(|it| wanted(it)).collect();
        let mut skills = map_parallel(&skills, progress, |skill| {
            let mut studied = self.study_skill(skill);
            advisor.advise(&mut studied);
            studied
        });
        skills.sort_by_cached_key(|it| (it.standing, it.won * 1000 / it.probes.len().max(1)));
        let closest = self.closest(&wanted);
        Study {
            skills,
            families: families
                .into_iter()
                .filter(|it: &NearDuplicates<'_>| it.members.iter().any(|it| wanted(it.skill)))
                .collect(),
            closest,
        }
    }

    fn study_skill(&self, skill: &'lib Skill) -> StudiedSkill<'lib> {
        let mut studied = StudiedSkill {
            skill,
            standing: ProbeStatus::NotInUse,
            because: None,
            probes: Vec::new(),
            won: 0,
            competitors: Vec::new(),
            shared: Vec::new(),
            own: Vec::new(),
            advice: Vec::new(),
        };
        if !can_be_matched(skill) {
            studied.standing = match &skill.hidden_by {
                Some(_) => ProbeStatus::Hidden,
                None if skill.manifest.is_active() => ProbeStatus::ForPeople,
                None => ProbeStatus::NotInUse,
            };
            return studied;
        }
        let requests = probes(&skill.manifest).into_iter();
        studied.probes = requests.map(|it| self.probe(skill, it)).collect();
        studied.competitors = self.competitors(skill, &studied.probes);
        studied.won = studied
            .probes
            .iter()
            .filter(|it: &&Probe<'_>| it.rank == Some(1) && it.confidence >= self.threshold)
            .count();
        studied.standing = if !studied.probes.iter().any(|it: &Probe<'_>| {
            it.rank.is_some_and(|it| it <= FOUND_WITHIN) && it.confidence >= self.threshold
        }) {
            ProbeStatus::NeverFound
        } else if studied.won * 2 < studied.probes.len() {
            ProbeStatus::Contested
        } else {
            ProbeStatus::Found
        };
        studied
    }

    fn probe(&self, skill: &'lib Skill, request: String) -> Probe<'lib> {
        let matches = self.ask(&request);
        let place = matches.iter().position(|it| std::ptr::eq(it.skill, skill));
        Probe {
            request,
            rank: place.map(|it| it + 1),
            confidence: place.map_or(0.0, |it| matches[it].confidence),
            first: matches.first().map(|it| (it.skill, it.confidence)),
        }
    }

    /// Returns the skills that are matched instead of a skill; ties stay in the order of the
    /// requests.
    fn competitors(&self, skill: &Skill, probes: &[Probe<'lib>]) -> Vec<Competitor<'lib>> {
        let mut competitors: Vec<Competitor<'lib>> = Vec::new();
        for probe in probes {
            let Some((first, confidence)) = probe.first else { continue };
            if std::ptr::eq(first, skill) || confidence < self.threshold {
                continue;
            }
            let lead = confidence - probe.confidence;
            match competitors.iter_mut().find(|it| std::ptr::eq(it.skill, first)) {
                Some(competitor) => {
                    competitor.lead += lead;
                    competitor.takes += 1;
                }
                None => competitors.push(Competitor { skill: first, takes: 1, lead }),
            }
        }
        competitors.iter_mut().for_each(|it| it.lead /= it.takes as f64);
        competitors.sort_by_key(|it| std::cmp::Reverse(it.takes));
        competitors
    }
}

impl ProbeStatus {
    /// Returns the words for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeverFound => "never found",
            Self::Contested => "contested",
            Self::Found => "found",
            Self::ForPeople => "for people",
            Self::Hidden => "hidden",
            Self::NotInUse => "not in use",
        }
    }
}
