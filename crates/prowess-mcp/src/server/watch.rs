//! Change notifications for connected clients.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, Weak},
    thread,
    time::Duration,
};

use prowess::{Library, lock};
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

use crate::server::{
    resources,
    server_state::{ServeOptions, ServerState},
};

/// The interval of checking whether there are still listeners.
const TICK: Duration = Duration::from_secs(1);
/// The timeout of a notification.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum number of resources a client may subscribe to, the maximum of all clients together,
/// and the maximum length of such a URI.
const MOST: usize = 128;
const MOST_OF_ALL: usize = 8192;
const LONGEST: usize = 512;

/// The listeners for changes.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    listeners: Mutex<Vec<Weak<Listener>>>,
    /// The last stamp of each URI that has a subscription.
    stamps: Mutex<BTreeMap<String, Option<u64>>>,
}

/// A listener for changes, until it is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    notifier: Notifier,
    uris: Mutex<BTreeSet<String>>,
}

/// The channel of notifications.
#[derive(Debug)]
enum Notifier {
    /// All notifications, for clients with a handshake.
    Peer(Peer<RoleServer>),
    /// The requested notifications, as long as the request runs.
    Subscription(SubscriptionSink),
}

/// A change.
#[derive(Debug)]
struct Change {
    /// Whether the list of resources changed.
    resources: bool,
    /// Whether the list of prompts changed: other skills, or other descriptions of them.
    prompts: bool,
    /// The URIs whose content changed.
    updated: BTreeSet<String>,
}

/// Watches the library until it is dropped.
#[derive(Debug)]
pub(crate) struct WatchHandle(AbortHandle);

impl Watch {
    /// Watches the library, and notifies all listeners.
    pub(crate) fn follow(self: &Arc<Self>, served: &Arc<ServerState>) -> WatchHandle {
        let mut before = served.library();
        let mut libraries = libraries(served, before.clone());
        let (watch, served) = (self.clone(), served.clone());
        let following = tokio::spawn(async move {
            while libraries.changed().await.is_ok() {
                let after = libraries.borrow_and_update().clone();
                let (watch_again, last) =
                    (watch.clone(), std::mem::replace(&mut before, after.clone()));
                let checked = served.work(move |served: &ServerState| {
                    Ok(watch_again.check_changes(served, &last, &after))
                });
                if let Ok(change) = checked.await {
                    watch.notify(&Arc::new(change));
                }
            }
        });
        WatchHandle(following.abort_handle())
    }

    /// Adds a client that has finished its handshake.
    pub(crate) fn add_client(&self, peer: Peer<RoleServer>) -> Arc<Listener> {
        self.add(Notifier::Peer(peer), BTreeSet::new())
    }

    /// Returns as much of a client's subscription as the limits allow.
    pub(crate) fn accept(
        &self,
        served: &ServerState,
        requested: &SubscriptionFilter,
    ) -> SubscriptionFilter {
        let mut accepted = requested.clone();
        if !served.options.prompts {
            accepted.prompts_list_changed = None;
        }
        if !served.options.resources {
            (accepted.resources_list_changed, accepted.resource_subscriptions) = (None, None);
        }
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|it| it.len() <= LONGEST);
            uris.truncate(MOST.min(self.remaining_subscriptions()));
            // They are read here, because a change after the client was told that it is accepted
            // must not be missed.
            uris.iter().for_each(|it| self.remember(it, stamp(served, it).ok()));
        }
        accepted
    }

    /// Sends a client the requested notifications, until it cancels.
    pub(crate) async fn listen(&self, context: SubscriptionContext) {
        let uris = context.accepted().resource_subscriptions.iter().flatten().cloned();
        let notifier = Notifier::Subscription(context.sink().clone());
        let _listener = self.add(notifier, uris.collect());
        context.cancelled().await;
    }

    /// Subscribes a client to one more resource.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        served: &Arc<ServerState>,
        listener: &Listener,
        uri: String,
    ) -> Result<(), ErrorData> {
        let own = lock(&listener.uris).len();
        if own >= MOST || self.remaining_subscriptions() == 0 {
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
        lock(&listener.uris).insert(uri);
        Ok(())
    }

    fn add(&self, notifier: Notifier, uris: BTreeSet<String>) -> Arc<Listener> {
        let listener = Arc::new(Listener { notifier, uris: Mutex::new(uris) });
        let mut listeners = lock(&self.listeners);
        listeners.retain(|it| it.strong_count() > 0);
        listeners.push(Arc::downgrade(&listener));
        listener
    }

    fn remember(&self, uri: &str, stamp: Option<u64>) {
        lock(&self.stamps).entry(uri.to_owned()).or_insert(stamp);
    }

    /// Returns the number of further resources that can be subscribed to.
    fn remaining_subscriptions(&self) -> usize {
        let mut stamps = lock(&self.stamps);
        if stamps.len() >= MOST_OF_ALL {
            let wanted = self.subscribed_uris();
            stamps.retain(|uri, _| wanted.contains(uri));
        }
        MOST_OF_ALL.saturating_sub(stamps.len())
    }

    fn subscribed_uris(&self) -> BTreeSet<String> {
        self.listeners().iter().flat_map(|it| lock(&it.uris).clone()).collect()
    }

    fn listeners(&self) -> Vec<Arc<Listener>> {
        lock(&self.listeners).iter().filter_map(Weak::upgrade).collect()
    }

    /// Checks everything that has a subscription; the rest is forgotten.
    fn check_changes(&self, served: &ServerState, before: &Library, after: &Library) -> Change {
        let found = self.subscribed_uris().into_iter().map(|it| (stamp(served, &it).ok(), it));
        let found: BTreeMap<String, Option<u64>> = found.map(|(stamp, uri)| (uri, stamp)).collect();
        let last = std::mem::replace(&mut *lock(&self.stamps), found.clone());
        let updated = found
            .into_iter()
            .filter(|(uri, stamp): &(String, Option<u64>)| last.get(uri) != Some(stamp))
            .map(|it| it.0)
            .collect();
        let ServeOptions { prompts, resources, .. } = served.options;
        Change {
            resources,
            prompts: prompts && !listed_data(before).eq(listed_data(after)),
            updated,
        }
    }

    /// Notifies all listeners, without waiting for slow ones.
    fn notify(&self, change: &Arc<Change>) {
        for listener in self.listeners() {
            let change = change.clone();
            tokio::spawn(async move { timeout(PATIENCE, listener.notify(&change)).await });
        }
    }
}

impl Listener {
    /// Cancels the client's subscription to a resource.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        lock(&self.uris).remove(uri);
    }

    /// Sends a notification. Nothing is sent to a client that is gone or has not asked for it.
    async fn notify(&self, change: &Change) {
        let updated: Vec<String> =
            lock(&self.uris).intersection(&change.updated).cloned().collect();
        match &self.notifier {
            Notifier::Peer(peer) => {
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
            Notifier::Subscription(sink) => {
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

/// Returns the libraries that follow this one, each as soon as it exists. The thread that waits for
/// them does not keep the server from ending.
fn libraries(served: &Arc<ServerState>, mut last: Arc<Library>) -> Receiver<Arc<Library>> {
    let (sender, libraries) = channel(last.clone());
    let provider = served.provider.clone();
    // If the system cannot start a thread, there are no notifications.
    let _ = thread::Builder::new().name("prowess-news".to_owned()).spawn(move || {
        while !sender.is_closed() {
            let next = provider.wait(&last, TICK);
            if !Arc::ptr_eq(&last, &next) {
                last = next;
                sender.send_replace(last.clone());
            }
        }
    });
    libraries
}

/// Returns a hash that identifies the state of a resource.
fn stamp(served: &ServerState, uri: &str) -> Result<u64, ErrorData> {
    let read = resources::read(served, uri)?;
    let mut hasher = DefaultHasher::new();
    serde_json::to_vec(&read.contents).unwrap_or_default().hash(&mut hasher);
    Ok(hasher.finish())
}

/// Returns the data of skills that lists contain.
fn listed_data(library: &Library) -> impl Iterator<Item = impl PartialEq> {
    library.skills().map(|it| (&it.manifest, it.origin.scope))
}
