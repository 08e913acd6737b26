//! Installs of some skills, with requests of which half have no skill there.

use std::collections::HashSet;

use crate::{
    random::Random,
    retrieval::{Data, Request},
};

/// Skills that are installed together, each name once, and requests to them.
#[derive(Debug)]
pub(crate) struct Pool<'d> {
    /// The skills, by their indices.
    pub(crate) skills: Vec<usize>,
    /// Requests whose right skills are all installed.
    pub(crate) matched: Vec<&'d Request>,
    /// As many requests whose right skills, or others of their names, are not installed.
    pub(crate) unmatched: Vec<&'d Request>,
}

/// The most requests of a kind in one pool: others add more in another pool.
const REQUESTS: usize = 100;

impl<'d> Pool<'d> {
    /// Draws an install of `size` skills; a smaller one if there are not enough.
    pub(crate) fn draw(data: &'d Data, size: usize, random: &mut Random) -> Self {
        let mut requests: Vec<&Request> = data.requests.iter().collect();
        random.shuffle(&mut requests);
        let mut install = Install { data, size, skills: Vec::new(), names: HashSet::new() };
        // Half of the skills are not right for any drawn request.
        let wanted = (size / 2).clamp(1, REQUESTS);
        let (mut matched, mut unmatched) = (Vec::new(), Vec::new());
        let mut rest = requests.into_iter();
        while matched.len() < wanted
            && let Some(request) = rest.next()
        {
            if install.add(&data.right(request)) {
                matched.push(request);
            }
        }
        let mut kept_out: HashSet<&str> = HashSet::new();
        while unmatched.len() < matched.len()
            && let Some(request) = rest.next()
        {
            let names = data.right(request).into_iter().map(|it| data.skills[it].name.as_str());
            let names: Vec<&str> = names.collect();
            if !names.iter().any(|it| install.names.contains(it)) {
                kept_out.extend(names);
                unmatched.push(request);
            }
        }
        let mut others: Vec<usize> = (0..data.skills.len()).collect();
        random.shuffle(&mut others);
        for skill in others.into_iter().filter(|it| !kept_out.contains(&*data.skills[*it].name)) {
            if install.skills.len() == size {
                break;
            }
            install.add(&[skill]);
        }
        Pool { skills: install.skills, matched, unmatched }
    }
}

struct Install<'d> {
    data: &'d Data,
    size: usize,
    skills: Vec<usize>,
    names: HashSet<&'d str>,
}

impl Install<'_> {
    /// Adds skills, all or none of them.
    fn add(&mut self, skills: &[usize]) -> bool {
        let is_new = |it: &&usize| !self.skills.contains(it);
        let new: Vec<usize> = skills.iter().filter(is_new).copied().collect();
        let names: HashSet<&str> =
            new.iter().map(|it| self.data.skills[*it].name.as_str()).collect();
        let fits = self.skills.len() + new.len() <= self.size && names.len() == new.len();
        if !fits || names.iter().any(|it| self.names.contains(it)) {
            return false;
        }
        self.names.extend(names);
        self.skills.extend(new);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retrieval::Skill;

    /// Returns skills 0 to 39, of which 38 and 39 have one name; each but the first ten has a
    /// request.
    fn data() -> Data {
        let skill = |number: usize| Skill {
            id: format!("s{number}"),
            name: format!("skill-{}", number.min(38)),
            description: "It does something".to_owned(),
            body: String::new(),
            repo: String::new(),
        };
        let request = |number: usize| Request {
            id: format!("q{number}"),
            query: "Do something".to_owned(),
            gold: vec![format!("s{number}")],
            stratum: "author".to_owned(),
            source_repo: String::new(),
        };
        let requests = (10..40).map(request).collect();
        Data::new((0..40).map(skill).collect(), requests, Vec::new()).unwrap()
    }

    #[test]
    fn half_of_the_requests_have_their_skill() {
        let data = data();
        let mut random = Random::new(1);
        for size in [1, 5, 20] {
            let pool = Pool::draw(&data, size, &mut random);
            assert_eq!(pool.skills.len(), size);
            assert_eq!(pool.matched.len(), (size / 2).max(1));
            assert_eq!(pool.unmatched.len(), pool.matched.len());
            let name = |it: &usize| &*data.skills[*it].name;
            let names: HashSet<&str> = pool.skills.iter().map(name).collect();
            assert_eq!(names.len(), size, "a name is there twice");
            let has_it = |it: &&Request| names.contains(name(&data.right(it)[0]));
            assert!(pool.matched.iter().all(|it| pool.skills.contains(&data.right(it)[0])));
            assert!(!pool.unmatched.iter().any(has_it));
        }
    }

    #[test]
    fn an_install_holds_no_more_than_there_is() {
        let data = data();
        let pool = Pool::draw(&data, 1000, &mut Random::new(1));
        assert!(pool.skills.len() < 40, "{}", pool.skills.len());
        assert!(!pool.matched.is_empty());
    }

    #[test]
    fn a_request_that_wants_more_than_fits_is_not_drawn() {
        let mut data = data();
        data.requests[0].gold.extend(["s0".to_owned(), "s1".to_owned()]);
        data.requests.truncate(2);
        let pool = Pool::draw(&data, 2, &mut Random::new(1));
        assert_eq!(pool.matched[0].id, "q11");
    }
}
