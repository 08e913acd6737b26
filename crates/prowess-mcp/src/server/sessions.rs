//! The owners of HTTP sessions: no client can have so many that none is left for others.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use prowess::lock;

/// The time after which an idle session without an open stream makes room for another of the same
/// client.
const IDLE: Duration = Duration::from_secs(60);

/// The origin of a client: a machine, and on this machine a user if that can be determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer {
    address: IpAddr,
    user: Option<u32>,
}

/// The sessions, with their owners and the time of their last requests.
#[derive(Debug)]
pub(crate) struct SessionTable {
    sessions: Mutex<BTreeMap<String, Session>>,
    /// The number of places created so far.
    count: AtomicU64,
    /// The maximum number of sessions, and of those of one client.
    most: usize,
    most_of_one: usize,
}

#[derive(Debug)]
struct Session {
    peer: Peer,
    last_request: Instant,
    /// Shared with every answer that is still being read.
    open: Arc<()>,
}

/// A reserved place for a session that is about to begin. Dropping it releases the place.
#[derive(Debug)]
pub(crate) struct Reservation<'t> {
    table: &'t SessionTable,
    name: String,
    /// The session that has to end for it.
    pub(crate) evicted: Option<String>,
}

impl Peer {
    /// Returns the origin of a connection. A client on this machine can use any of its addresses,
    /// so these count as one; a client with IPv6 has a whole network.
    pub(crate) fn of(client: SocketAddr, server: SocketAddr) -> Self {
        let address = client.ip().to_canonical();
        if address.is_loopback() {
            return Self { address: Ipv4Addr::LOCALHOST.into(), user: user(client, server) };
        }
        let address = match address {
            IpAddr::V6(it) => {
                let [a, b, c, d, ..] = it.segments();
                IpAddr::from([a, b, c, d, 0, 0, 0, 0])
            }
            it @ IpAddr::V4(_) => it,
        };
        Self { address, user: None }
    }
}

impl SessionTable {
    pub(crate) fn new(most: usize, most_of_one: usize) -> Self {
        Self { sessions: Mutex::default(), count: AtomicU64::new(0), most, most_of_one }
    }

    /// Reserves a place for a session of a client, if possible. `is_there` tells which sessions
    /// have not ended by themselves.
    pub(crate) fn reserve(
        &self,
        peer: Peer,
        is_there: impl Fn(&str) -> bool,
    ) -> Option<Reservation<'_>> {
        let mut sessions = self.lock_sessions();
        sessions.retain(|id, _| id.starts_with(PLACE) || is_there(id));
        let mut counts: BTreeMap<Peer, usize> = BTreeMap::new();
        for session in sessions.values() {
            *counts.entry(session.peer).or_default() += 1;
        }
        let own = counts.get(&peer).copied().unwrap_or(0);
        let idle = |only: Option<Peer>, least: Duration| {
            sessions
                .iter()
                .filter(|(id, session): &(&String, &Session)| {
                    !id.starts_with(PLACE)
                        && only.is_none_or(|own| session.peer == own)
                        && !session.is_open()
                        && session.last_request.elapsed() >= least
                })
                .min_by_key(|it| it.1.last_request)
                .map(|it| it.0.clone())
        };
        let evicted = if own >= self.most_of_one {
            Some(idle(Some(peer), IDLE)?)
        } else if sessions.len() >= self.most {
            // The client with the most sessions loses one to a client that has fewer.
            let largest = counts.iter().max_by_key(|it| it.1).filter(|it| *it.1 > own + 1);
            Some(idle(None, IDLE).or_else(|| idle(Some(*largest?.0), Duration::ZERO))?)
        } else {
            None
        };
        if let Some(id) = &evicted {
            sessions.remove(id);
        }
        let name = format!("{PLACE}{}", self.count.fetch_add(1, Ordering::Relaxed));
        let session = Session { peer, last_request: Instant::now(), open: Arc::new(()) };
        sessions.insert(name.clone(), session);
        Some(Reservation { table: self, name, evicted })
    }

    /// Records a request of a session; the returned value is kept while its answer is being read.
    pub(crate) fn record_request(&self, id: &str) -> Option<Arc<()>> {
        let mut sessions = self.lock_sessions();
        let session = sessions.get_mut(id)?;
        session.last_request = Instant::now();
        Some(session.open.clone())
    }

    fn lock_sessions(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        lock(&self.sessions)
    }
}

impl Reservation<'_> {
    /// Assigns it to the session that has begun.
    pub(crate) fn settle(self, id: &str) {
        let mut sessions = self.table.lock_sessions();
        if let Some(session) = sessions.remove(&self.name) {
            sessions.insert(id.to_owned(), session);
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.table.lock_sessions().remove(&self.name);
    }
}

impl Session {
    fn is_open(&self) -> bool {
        Arc::strong_count(&self.open) > 1
    }
}

/// The prefix of a place's key, which no session id has.
const PLACE: &str = "place ";

/// Returns the user at the other end of a local connection, from the kernel's list.
fn user(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|path| {
        let text = fs::read_to_string(path).ok()?;
        text.lines().skip(1).find_map(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (local, remote) = (fields.next()?, fields.next()?);
            let user = fields.nth(4)?.parse().ok()?;
            (is_address(local, client)? && is_address(remote, server)?).then_some(user)
        })
    })
}

/// Returns whether an address in the kernel's list is this one; `None` if it is malformed.
fn is_address(text: &str, own: SocketAddr) -> Option<bool> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(port == own.port() && kernel_forms(own.ip()).contains(&address.to_owned()))
}

/// Returns the forms in which the kernel may write an address: native byte order, four bytes at a
/// time.
fn kernel_forms(address: IpAddr) -> Vec<String> {
    match address {
        IpAddr::V4(it) => vec![hex_words(&it.octets()), hex_words(&it.to_ipv6_mapped().octets())],
        IpAddr::V6(it) => {
            let mapped = it.to_ipv4_mapped().map(|it| hex_words(&it.octets()));
            std::iter::once(hex_words(&it.octets())).chain(mapped).collect()
        }
    }
}

fn hex_words(bytes: &[u8]) -> String {
    let words = bytes.as_chunks().0.iter();
    words.map(|it| format!("{:08X}", u32::from_ne_bytes(*it))).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn peer(last: u8) -> Peer {
        Peer { address: Ipv4Addr::new(10, 0, 0, last).into(), user: None }
    }

    /// Begins a session; returns the one that ended for it, or `None` if no place was left.
    fn begin(table: &SessionTable, peer: Peer, id: &str) -> Option<Option<String>> {
        let place = table.reserve(peer, |_| true)?;
        let evicted = place.evicted.clone();
        place.settle(id);
        Some(evicted)
    }

    fn evicted(id: &str) -> Option<Option<String>> {
        Some(Some(id.to_owned()))
    }

    #[test]
    fn one_client_leaves_room_for_others() {
        let table = SessionTable::new(4, 3);
        for id in ["a", "b", "c"] {
            assert_eq!(begin(&table, peer(1), id), Some(None));
        }
        assert_eq!(begin(&table, peer(1), "d"), None);
        assert_eq!(begin(&table, peer(2), "e"), Some(None));
        // No place is left: the client with the most sessions loses the one idle for longest.
        let reading = table.record_request("a");
        assert_eq!(begin(&table, peer(3), "f"), evicted("b"));
        drop(reading);
        assert_eq!(begin(&table, peer(2), "g"), None, "both would have as many");
    }

    #[test]
    fn an_idle_session_makes_room_and_one_that_is_read_does_not() {
        let table = SessionTable::new(10, 2);
        begin(&table, peer(1), "a");
        begin(&table, peer(1), "b");
        for session in table.lock_sessions().values_mut() {
            session.last_request -= 2 * IDLE;
        }
        let reading = table.record_request("a");
        table.lock_sessions().get_mut("a").unwrap().last_request -= 4 * IDLE;
        assert_eq!(begin(&table, peer(1), "c"), evicted("b"));
        assert_eq!(begin(&table, peer(1), "d"), None);
        drop(reading);
        assert_eq!(begin(&table, peer(1), "d"), evicted("a"));
        drop(table.reserve(peer(1), |_| false).unwrap());
        assert!(table.lock_sessions().is_empty());
    }

    #[test]
    fn the_addresses_of_this_machine_are_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let client = TcpStream::connect(server).unwrap().local_addr().unwrap();
        assert_eq!(Peer::of(client, server).user, user(client, server));
        let other: SocketAddr = "127.0.0.9:1".parse().unwrap();
        assert_eq!(Peer::of(other, server).address, Peer::of(client, server).address);
        let of = |text: &str| Peer::of(text.parse().unwrap(), server);
        assert_eq!(of("[2001:db8::1]:1"), of("[2001:db8::2]:9"));
        assert_ne!(of("[2001:db8:1::1]:1"), of("[2001:db8:2::1]:1"));
        assert_ne!(of("192.0.2.1:1"), of("192.0.2.2:1"));
    }
}
