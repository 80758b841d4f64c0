//! Updates under a sequence of events that looks random: changes, evictions, errors of the API
//! server, restarts, statuses and revisions that tenants write.

use innkeeper_lab::Content;
use serde_json::{Value, json};

use crate::support::{Guard, Reply, Stage, block_on};
use crate::update_faults::{errors, finish, kept, numbers, sizes, stage};
use crate::updates::{condition, widget_group, widget_path, writes};

/// The names of the Widgets.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

const METHODS: [&str; 2] = ["RollingRecreate", "RollingInPlace"];

/// The path of the ControllerRevisions of all primaries.
const REVISIONS: &str = "/apis/apps/v1/namespaces/ns/controllerrevisions";

/// A sequence of numbers that look random (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()].clone()
    }
}

/// A primary whose update is disturbed.
struct Chaos {
    numbers: Numbers,
    guard: Guard,
    group: Value,
    size: u32,
    is_paused: bool,
}

impl Chaos {
    fn spec(&self) -> Value {
        let mut group = self.group.clone();
        group["paused"] = self.is_paused.into();
        kept(&group, self.size)
    }

    /// Something happens; gives the stage, whose host may be another one.
    async fn event(&mut self, stage: Stage) -> Stage {
        let name = self.numbers.one_of(&NAMES);
        let path = widget_path(name);
        let exists = stage.get(&path).await.is_some();
        match self.numbers.below(22) {
            0 => {
                self.size += 1;
                stage.set_spec("one", &self.spec()).await;
            }
            1 => {
                self.size = self.size.saturating_sub(1).max(1);
                stage.set_spec("one", &self.spec()).await;
            }
            2 => return stage.stop().await.start().await,
            3 => stage.api().delete(&path).await.unwrap(),
            4 if exists => condition(&stage, name, "Ready", "False").await,
            5 if exists => condition(&stage, name, "Stalled", "True").await,
            6 | 7 => {
                let (_, error) = self.numbers.one_of(&errors());
                let good = usize::try_from(self.numbers.below(4)).unwrap();
                let bad = usize::try_from(self.numbers.below(3)).unwrap() + 1;
                let good = std::iter::repeat_n(Reply::Forward, good);
                self.guard.fail(good.chain(std::iter::repeat_n(error, bad)));
            }
            8 if exists => {
                let finalizers = json!({"metadata": {"finalizers": ["example.com/wait"]}});
                stage.merge_at(&path, &finalizers).await;
            }
            9 => {
                match self.numbers.below(4) {
                    0 => self.group["method"] = self.numbers.one_of(&METHODS).into(),
                    1 => {
                        let name = self.numbers.one_of(&["widgets", "others"]);
                        self.group["name"] = name.into();
                    }
                    _ => self.is_paused = !self.is_paused,
                }
                stage.set_spec("one", &self.spec()).await;
            }
            10 => self.touch_revision(&stage).await,
            11 if exists => {
                let finalizers = json!({"metadata": {"finalizers": null}});
                stage.merge_at(&path, &finalizers).await;
            }
            12 if exists => {
                let change = self.numbers.one_of(&[
                    json!({"annotations": {"innkeeper.dev/applied": null}}),
                    json!({"annotations": {"innkeeper.dev/applied": "0123456789abcdef0123456789abcdef"}}),
                    json!({"ownerReferences": null}),
                    json!({"managedFields": [{}]}),
                    json!({"labels": {"a": "b"}}),
                ]);
                stage.merge_at(&path, &json!({ "metadata": change })).await;
            }
            _ if exists => condition(&stage, name, "Ready", "True").await,
            _ => {}
        }
        stage
    }

    /// A tenant deletes a revision, or gives it another number.
    async fn touch_revision(&mut self, stage: &Stage) {
        let revisions = stage.api().list(REVISIONS).await.unwrap();
        if revisions.is_empty() {
            return;
        }
        let revision = self.numbers.one_of(&revisions);
        let path = format!("{REVISIONS}/{}", revision["metadata"]["name"].as_str().unwrap());
        if self.numbers.below(2) == 0 {
            stage.api().delete(&path).await.unwrap();
        } else {
            let number = self.numbers.one_of(&[0, 1, 7, (1 << 53) - 1, 1 << 53, i64::MAX]);
            let number = json!({ "revision": number });
            stage.api().send("PATCH", &path, Content::MergePatch, &number).await.unwrap();
        }
    }
}

#[test]
fn update_keeps_its_limit_in_chaos_and_ends_after_it() {
    for seed in 1..=4_u32 {
        block_on(async {
            let method = METHODS[usize::from(seed % 2 == 0)];
            let mut group = widget_group(method);
            let max = usize::try_from(seed % 3).unwrap() + 1;
            group["maxUnavailable"] = max.into();
            let mut stage = stage(&group).await;
            let guard = Guard::new(&stage, max, NAMES.len());
            guard.watch(&stage);
            let numbers_of = Numbers(u64::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let mut chaos = Chaos {
                numbers: numbers_of,
                guard: guard.clone(),
                group,
                size: 1,
                is_paused: false,
            };

            // When things happen for a while.
            for step in 0..60 {
                stage = chaos.event(stage).await;
                stage.pass(chaos.numbers.below(6) + 1).await;
                assert_eq!(guard.violations(), [""; 0], "seed {seed}, step {step}");
            }

            // Then the next change is applied as soon as all is well again.
            guard.fail([]);
            (chaos.size, chaos.is_paused) = (99, false);
            for name in NAMES {
                if stage.get(&widget_path(name)).await.is_some() {
                    let finalizers = json!({"metadata": {"finalizers": null}});
                    stage.merge_at(&widget_path(name), &finalizers).await;
                }
            }
            stage.set_spec("one", &chaos.spec()).await;
            finish(&stage, 99, &format!("seed {seed}")).await;
            assert_eq!(guard.violations(), [""; 0], "seed {seed}");
            assert_eq!(sizes(&stage).await, [99; 5]);
            stage.settle().await;
            assert!(numbers(&stage).await.len() <= 3, "seed {seed}: {:?}", numbers(&stage).await);
            writes(&stage);
            stage.pass(600).await;
            assert_eq!(writes(&stage), [""; 0], "seed {seed}");
        });
    }
}
