//! Telling clients what has changed, as long as they are there to hear it.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::Duration,
};

use prowess::Library;
use rmcp::{
    ErrorData, Peer, RoleServer,
    model::{ResourceUpdatedNotificationParam, SubscriptionFilter},
    service::{SubscriptionContext, SubscriptionSink},
};
use tokio::{
    sync::watch::{Receiver, channel},
    task::AbortHandle,
    time::timeout,
};

use crate::{
    resources,
    server_state::{ServeOptions, ServerState},
};

/// How often it is looked whether anybody still wants to hear of changes.
const TICK: Duration = Duration::from_secs(1);
/// How long a client may take to be told.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many resources a client may want to hear of, how many all of them may, and how long a URI may
/// be for that.
const MOST: usize = 128;
const MOST_OF_ALL: usize = 8192;
const LONGEST: usize = 512;

/// Those who want to hear of changes.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    listeners: Mutex<Vec<Weak<Listener>>>,
    /// What was last found at each URI that somebody wants to hear of.
    seen: Mutex<BTreeMap<String, Option<u64>>>,
}

/// One who wants to hear of changes, until it is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    voice: Voice,
    uris: Mutex<BTreeSet<String>>,
}

/// How a client is told.
#[derive(Debug)]
enum Voice {
    /// All of it, as clients with a handshake are.
    Peer(Peer<RoleServer>),
    /// What it has asked for, as long as its request runs.
    Subscription(SubscriptionSink),
}

/// What has changed.
#[derive(Debug)]
struct Change {
    /// Whether the list of resources is another one.
    resources: bool,
    /// Whether the list of prompts is: there are other skills, or they say other things of themselves.
    prompts: bool,
    /// The URIs at which there is something else now.
    updated: BTreeSet<String>,
}

/// Follows the library for as long as this is kept.
#[derive(Debug)]
pub(crate) struct WatchHandle(AbortHandle);

impl Watch {
    /// Follows the library, and tells everybody.
    pub(crate) fn follow(self: &Arc<Self>, served: &Arc<ServerState>) -> WatchHandle {
        let mut before = served.library();
        let mut libraries = libraries(served, before.clone());
        let (watch, served) = (self.clone(), served.clone());
        let following = tokio::spawn(async move {
            while libraries.changed().await.is_ok() {
                let after = libraries.borrow_and_update().clone();
                let (watch_again, last) =
                    (watch.clone(), std::mem::replace(&mut before, after.clone()));
                let change =
                    move |served: &ServerState| Ok(watch_again.look(served, &last, &after));
                if let Ok(change) = served.work(change).await {
                    watch.tell(&Arc::new(change));
                }
            }
        });
        WatchHandle(following.abort_handle())
    }

    /// Takes in a client that has finished its handshake.
    pub(crate) fn greet(&self, peer: Peer<RoleServer>) -> Arc<Listener> {
        self.add(Voice::Peer(peer), BTreeSet::new())
    }

    /// As much of what a client wants to hear of as there is room for.
    pub(crate) fn accept(
        &self,
        served: &ServerState,
        requested: &SubscriptionFilter,
    ) -> SubscriptionFilter {
        let mut accepted = requested.clone();
        if !served.telling.prompts {
            accepted.prompts_list_changed = None;
        }
        if !served.telling.resources {
            (accepted.resources_list_changed, accepted.resource_subscriptions) = (None, None);
        }
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|it| it.len() <= LONGEST);
            uris.truncate(MOST.min(self.room()));
            // They are read here, because what changes after the client has been told that it is
            // accepted must not be missed.
            uris.iter().for_each(|it| self.remember(it, stamp(served, it).ok()));
        }
        accepted
    }

    /// Tells a client what it has asked for, until it does not want to hear of it any more.
    pub(crate) async fn listen(&self, context: SubscriptionContext) {
        let uris = context.accepted().resource_subscriptions.iter().flatten().cloned();
        let voice = Voice::Subscription(context.sink().clone());
        let _listener = self.add(voice, uris.collect());
        context.cancelled().await;
    }

    /// Has a client hear of one resource more.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        served: &Arc<ServerState>,
        listener: &Listener,
        uri: String,
    ) -> Result<(), ErrorData> {
        let own = locked(&listener.uris).len();
        if own >= MOST || self.room() == 0 {
            return Err(ErrorData::invalid_params("too many resources are subscribed to", None));
        }
        if uri.len() > LONGEST {
            return Err(ErrorData::invalid_params("the URI is too long to subscribe to", None));
        }
        let (watch, wanted) = (self.clone(), uri.clone());
        served
            .work(move |served| {
                watch.remember(&wanted, Some(stamp(served, &wanted)?));
                Ok(())
            })
            .await?;
        locked(&listener.uris).insert(uri);
        Ok(())
    }

    fn add(&self, voice: Voice, uris: BTreeSet<String>) -> Arc<Listener> {
        let listener = Arc::new(Listener { voice, uris: Mutex::new(uris) });
        let mut listeners = locked(&self.listeners);
        listeners.retain(|it| it.strong_count() > 0);
        listeners.push(Arc::downgrade(&listener));
        listener
    }

    fn remember(&self, uri: &str, stamp: Option<u64>) {
        locked(&self.seen).entry(uri.to_owned()).or_insert(stamp);
    }

    /// How many more resources somebody may want to hear of.
    fn room(&self) -> usize {
        let mut seen = locked(&self.seen);
        if seen.len() >= MOST_OF_ALL {
            let wanted = self.wanted();
            seen.retain(|uri, _| wanted.contains(uri));
        }
        MOST_OF_ALL.saturating_sub(seen.len())
    }

    fn wanted(&self) -> BTreeSet<String> {
        self.listeners().iter().flat_map(|it| locked(&it.uris).clone()).collect()
    }

    fn listeners(&self) -> Vec<Arc<Listener>> {
        locked(&self.listeners).iter().filter_map(Weak::upgrade).collect()
    }

    /// Looks at all that somebody wants to hear of; what nobody does is forgotten.
    fn look(&self, served: &ServerState, before: &Library, after: &Library) -> Change {
        let found = self.wanted().into_iter().map(|it| (stamp(served, &it).ok(), it));
        let found: BTreeMap<String, Option<u64>> = found.map(|(stamp, uri)| (uri, stamp)).collect();
        let last = std::mem::replace(&mut *locked(&self.seen), found.clone());
        let is_other = |(uri, stamp): &(String, Option<u64>)| last.get(uri) != Some(stamp);
        let updated = found.into_iter().filter(is_other).map(|it| it.0).collect();
        let ServeOptions { prompts, resources, .. } = served.telling;
        Change { resources, prompts: prompts && !told(before).eq(told(after)), updated }
    }

    /// Tells everybody, without waiting for those that are slow.
    fn tell(&self, change: &Arc<Change>) {
        for listener in self.listeners() {
            let change = change.clone();
            tokio::spawn(async move { timeout(PATIENCE, listener.tell(&change)).await });
        }
    }
}

impl Listener {
    /// Has the client not hear of a resource any more.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        locked(&self.uris).remove(uri);
    }

    /// Tells of a change. A client that is gone, or has not asked for it, is told nothing.
    async fn tell(&self, change: &Change) {
        let updated: Vec<String> =
            locked(&self.uris).intersection(&change.updated).cloned().collect();
        match &self.voice {
            Voice::Peer(peer) => {
                if change.resources {
                    let _ = peer.notify_resource_list_changed().await;
                }
                if change.prompts {
                    let _ = peer.notify_prompt_list_changed().await;
                }
                for uri in updated {
                    let update = ResourceUpdatedNotificationParam::new(uri);
                    let _ = peer.notify_resource_updated(update).await;
                }
            }
            Voice::Subscription(sink) => {
                if change.resources {
                    let _ = sink.notify_resource_list_changed().await;
                }
                if change.prompts {
                    let _ = sink.notify_prompt_list_changed().await;
                }
                for uri in updated {
                    let _ = sink.notify_resource_updated(uri).await;
                }
            }
        }
    }
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The libraries that come after one, each as soon as it is there. The thread that waits for them is none
/// of those that a server ends with.
fn libraries(served: &Arc<ServerState>, mut last: Arc<Library>) -> Receiver<Arc<Library>> {
    let (sender, libraries) = channel(last.clone());
    let provider = served.provider.clone();
    let wait = move || {
        while !sender.is_closed() {
            let next = provider.wait(&last, TICK);
            if !Arc::ptr_eq(&last, &next) {
                last = next;
                sender.send_replace(last.clone());
            }
        }
    };
    // Where the system gives no thread, there is nobody who could tell.
    let _ = thread::Builder::new().name("prowess-news".to_owned()).spawn(wait);
    libraries
}

/// What tells one state of a resource from another.
fn stamp(served: &ServerState, uri: &str) -> Result<u64, ErrorData> {
    let read = resources::read(served, uri)?;
    let mut hasher = DefaultHasher::new();
    serde_json::to_vec(&read.contents).unwrap_or_default().hash(&mut hasher);
    Ok(hasher.finish())
}

/// What clients are told of skills in lists.
fn told(library: &Library) -> impl Iterator<Item = impl PartialEq> {
    library.skills().map(|it| (&it.manifest, it.origin.scope))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
