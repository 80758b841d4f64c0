//! Tiny guests that review requests.

use crate::review_case::Case;
use crate::{Exports, FIND, MANIFEST, MANIFEST_AT, PAGE, READ_RESULT, READS, SCRATCH, Tiny, get};

/// A verdict that allows a request.
pub const ALLOWED: &str = r#"{"allowed":true}"#;

/// The member of a manifest that describes the policy of the tests.
macro_rules! policy_member {
    () => {
        r#""policy":{"kind":"Validate","rules":[{"groups":[""],"resources":["configmaps"],"operations":["CREATE","UPDATE"]}]}"#
    };
}

/// A manifest of a policy that declares what the tests read.
pub const POLICY_MANIFEST: &str = concat!(
    r#"{"name":"tiny","#,
    policy_member!(),
    r#","reads":[{"apiVersion":"v1","kind":"ConfigMap","plural":"configmaps"}]}"#
);

/// Where [`Tiny::labelling`] writes its verdict: before the heap, which has what it is given.
const VERDICT_AT: usize = 64 << 10;

/// Where the text of a label lies.
const LABEL_AT: usize = SCRATCH + 200;

impl Tiny {
    /// A policy that gives this label to each object that has other ones.
    pub fn labelling(name: &str, value: &str) -> Self {
        let label = format!(r#""{name}":"{value}","#);
        let bytes = label.len();
        let insert = format!(
            "(memory.copy (local.get $next) (i32.const {LABEL_AT}) (i32.const {bytes}))
             (local.set $next (i32.add (local.get $next) (i32.const {bytes})))"
        );
        Self::inserting(&format!("(i32.const {VERDICT_AT})"), &insert).data(LABEL_AT, &label)
    }

    /// A policy that gives so many labels `k100000`, `k100001` and so on to each object that has
    /// other ones.
    pub fn labels_bomb(count: u32) -> Self {
        // The digits go from the last to the first, over the text that is copied before.
        let insert = format!(
            r#"(local.set $count (i32.const 100000))
            (loop $key
                (memory.copy (local.get $next) (i32.const {LABEL_AT}) (i32.const 13))
                (local.set $digits (local.get $count))
                (local.set $digit (i32.add (local.get $next) (i32.const 7)))
                (loop $more
                    (i32.store8 (local.get $digit)
                        (i32.add (i32.const 48) (i32.rem_u (local.get $digits) (i32.const 10))))
                    (local.set $digits (i32.div_u (local.get $digits) (i32.const 10)))
                    (local.set $digit (i32.sub (local.get $digit) (i32.const 1)))
                    (br_if $more (local.get $digits)))
                (local.set $next (i32.add (local.get $next) (i32.const 13)))
                (local.set $count (i32.add (local.get $count) (i32.const 1)))
                (br_if $key (i32.lt_u (local.get $count) (i32.const {}))))"#,
            100_000 + count
        );
        let pages = (13 * count as usize) / PAGE + 20;
        let verdict = format!("(i32.mul (memory.grow (i32.const {pages})) (i32.const {PAGE}))");
        Self::inserting(&verdict, &insert).data(LABEL_AT, r#""k000000":"","#)
    }

    /// A policy that writes something between the labels of each object that has labels: `insert`
    /// writes to `$next` and moves it. The verdict lies at the address that `verdict` gives.
    fn inserting(verdict: &str, insert: &str) -> Self {
        // What the verdict begins with; then the object of the request, with the label in it.
        let head = r#"{"allowed":true,"object":"#;
        let (object, old, labels) = (r#""object":"#, r#","oldObject":"#, r#""labels":{"#);
        let mut guest =
            Self::policy(ALLOWED).manifest(&POLICY_MANIFEST.replace("Validate", "Mutate"));
        // The result of a review takes the first bytes.
        let mut end = SCRATCH + 16;
        let mut text = |text: &str| {
            let at = end;
            end += text.len();
            guest = std::mem::take(&mut guest).data(at, text);
            (at, text.len())
        };
        let ((object_at, object), (old_at, old)) = (text(object), text(old));
        let ((members_at, labels), (head_at, head)) = (text(labels), text(head));
        assert!(end <= LABEL_AT, "the texts of a policy take too many bytes");
        guest
            .with(FIND)
            .with(&format!(
                "(func $label (param $at i32) (param $length i32) (result i32)
                     (local $start i32) (local $end i32) (local $labels i32) (local $next i32)
                     (local $verdict i32)
                     (local $count i32) (local $digits i32) (local $digit i32)
                     (local.set $start (call $find (local.get $at) (local.get $length)
                         (i32.const {object_at}) (i32.const {object})))
                     (local.set $end (i32.sub
                         (call $find (local.get $at) (local.get $length)
                             (i32.const {old_at}) (i32.const {old}))
                         (i32.const {old})))
                     (local.set $labels (call $find
                         (local.get $start) (i32.sub (local.get $end) (local.get $start))
                         (i32.const {members_at}) (i32.const {labels})))
                     (if (i32.eqz (local.get $labels)) (then (return (i32.const 0))))
                     (local.set $verdict {verdict})
                     (memory.copy (local.get $verdict) (i32.const {head_at}) (i32.const {head}))
                     (local.set $next (i32.add (local.get $verdict) (i32.const {head})))
                     (memory.copy (local.get $next) (local.get $start)
                         (i32.sub (local.get $labels) (local.get $start)))
                     (local.set $next (i32.add (local.get $next)
                         (i32.sub (local.get $labels) (local.get $start))))
                     {insert}
                     (memory.copy (local.get $next) (local.get $labels)
                         (i32.sub (local.get $end) (local.get $labels)))
                     (local.set $next (i32.add (local.get $next)
                         (i32.sub (local.get $end) (local.get $labels))))
                     (i32.store8 (local.get $next) (i32.const {brace}))
                     (i32.store (i32.const {SCRATCH}) (i32.const 0))
                     (i32.store offset=4 (i32.const {SCRATCH}) (local.get $verdict))
                     (i32.store offset=8 (i32.const {SCRATCH}) (i32.add (i32.const 1)
                         (i32.sub (local.get $next) (local.get $verdict))))
                     (i32.const {SCRATCH}))",
                brace = u32::from('}'),
            ))
            .review_wat(
                "(local.set $i (call $label (local.get $request) (local.get $length)))
                 (if (local.get $i) (then (return (local.get $i))))",
            )
    }

    /// A policy that replaces the first of these texts in the JSON of each object by another one.
    /// Both may have a few hundred bytes.
    pub fn replacing(text: &str, by: &str) -> Self {
        // What the verdict begins with; then the object of the request, with the change in it.
        let head = r#"{"allowed":true,"object":"#;
        let (object, old) = (r#""object":"#, r#","oldObject":"#);
        let mut guest = Self::policy(ALLOWED)
            .manifest(&POLICY_MANIFEST.replace("Validate", "Mutate"))
            .data(VERDICT_AT, head);
        // The result of a review takes the first bytes.
        let mut end = SCRATCH + 16;
        let mut place = |text: &str| {
            let at = end;
            end += text.len();
            guest = std::mem::take(&mut guest).data(at, text);
            (at, text.len())
        };
        let ((object_at, object), (old_at, old)) = (place(object), place(old));
        let ((text_at, text), (by_at, by)) = (place(text), place(by));
        assert!(end <= MANIFEST_AT, "the texts are too long");
        let next = VERDICT_AT + head.len();
        guest
            .with(FIND)
            .with(&format!(
                "(func $replace (param $at i32) (param $length i32) (result i32)
                     (local $start i32) (local $end i32) (local $behind i32) (local $next i32)
                     (local.set $start (call $find (local.get $at) (local.get $length)
                         (i32.const {object_at}) (i32.const {object})))
                     (local.set $end (i32.sub
                         (call $find (local.get $at) (local.get $length)
                             (i32.const {old_at}) (i32.const {old}))
                         (i32.const {old})))
                     (local.set $behind (call $find
                         (local.get $start) (i32.sub (local.get $end) (local.get $start))
                         (i32.const {text_at}) (i32.const {text})))
                     (if (i32.eqz (local.get $behind)) (then (return (i32.const 0))))
                     (local.set $next (i32.sub
                         (i32.sub (local.get $behind) (i32.const {text})) (local.get $start)))
                     (memory.copy (i32.const {next}) (local.get $start) (local.get $next))
                     (local.set $next (i32.add (i32.const {next}) (local.get $next)))
                     (memory.copy (local.get $next) (i32.const {by_at}) (i32.const {by}))
                     (local.set $next (i32.add (local.get $next) (i32.const {by})))
                     (memory.copy (local.get $next) (local.get $behind)
                         (i32.sub (local.get $end) (local.get $behind)))
                     (local.set $next (i32.add (local.get $next)
                         (i32.sub (local.get $end) (local.get $behind))))
                     (i32.store8 (local.get $next) (i32.const {brace}))
                     (i32.store (i32.const {SCRATCH}) (i32.const 0))
                     (i32.store offset=4 (i32.const {SCRATCH}) (i32.const {VERDICT_AT}))
                     (i32.store offset=8 (i32.const {SCRATCH})
                         (i32.sub (local.get $next) (i32.const {last})))
                     (i32.const {SCRATCH}))",
                brace = u32::from('}'),
                last = VERDICT_AT - 1,
            ))
            .review_wat(
                "(local.set $i (call $replace (local.get $request) (local.get $length)))
                 (if (local.get $i) (then (return (local.get $i))))",
            )
    }

    /// Does this (as [`review_wat`](Self::review_wat)) only if the text is in the request. A guest
    /// has one such text.
    pub fn when_requested(self, text: &str, code: &str) -> Self {
        let (at, bytes) = (SCRATCH + 16, text.len());
        self.with(FIND).data(at, text).review_wat(&format!(
            "(if (call $find (local.get $request) (local.get $length)
                     (i32.const {at}) (i32.const {bytes}))
                 (then {code}))"
        ))
    }

    /// A policy that denies each request whose JSON has a text, with this message.
    pub fn denying(text: &str, message: &str) -> Self {
        Self::deciding(text, &format!(r#"{{"allowed":false,"message":"{message}"}}"#))
    }

    /// Allows all requests but those with this text, which get this verdict.
    pub fn deciding(text: &str, verdict: &str) -> Self {
        Self::policy(ALLOWED).verdict_for(&[text], verdict)
    }

    /// A policy that gives this verdict to each request whose document has this text, and to all
    /// while the ConfigMap `ns/cm` has the text `read`. It allows all others.
    pub fn deciding_with_read(text: &str, verdict: &str, read: &str) -> Self {
        // The first bytes of the free memory name the ConfigMap.
        let (result, read_at) = (SCRATCH + 200, SCRATCH + 600);
        let in_read = format!(
            "{get}
             (if (i32.eqz (i32.load8_u (i32.const {READ_RESULT})))
                 (then (if (call $find
                         (i32.load offset=4 (i32.const {READ_RESULT}))
                         (i32.load offset=8 (i32.const {READ_RESULT}))
                         (i32.const {read_at}) (i32.const {}))
                     (then
                         (i32.store (i32.const {result}) (i32.const 0))
                         (i32.store offset=4 (i32.const {result}) (i32.const {VERDICT_AT}))
                         (i32.store offset=8 (i32.const {result}) (i32.const {}))
                         (return (i32.const {result}))))))",
            read.len(),
            verdict.len(),
            get = get(),
        );
        Self::deciding(text, verdict)
            .importing(READS)
            .data(SCRATCH, "v1ConfigMapnscm")
            .data(read_at, read)
            .data(VERDICT_AT, verdict)
            .review_wat(&in_read)
    }

    /// Exports `policy` only, and gives this verdict to each request.
    pub fn policy(verdict: &str) -> Self {
        Self { manifest: POLICY_MANIFEST.to_owned(), exports: Exports::Policy, ..Self::default() }
            .decision(0, verdict)
    }

    /// Gives this verdict to each request whose document has all of these texts; the first of these
    /// verdicts that fits counts, before [`Self::decision`].
    pub fn verdict_for(mut self, texts: &[&str], verdict: &str) -> Self {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        self.cases.push(Case::new(texts, verdict));
        self
    }

    /// Exports `reconciler` and `policy`, which allows each request unless
    /// [`decision`](Self::decision) says otherwise. The manifest of the tests gets the member
    /// `policy`.
    pub fn both(mut self) -> Self {
        self.exports = Exports::Both;
        if self.manifest == MANIFEST {
            self.manifest = format!("{{{},{}", policy_member!(), &MANIFEST[1..]);
        }
        self
    }

    /// Ends a review with `decided` or `failed` (0, 1) and a text.
    pub fn decision(mut self, case: u8, text: &str) -> Self {
        self.decision = (case, text.to_owned());
        self
    }

    /// Does this (wasm text, leaving nothing on the stack) before `describe` of `policy` answers.
    pub fn describe_policy(mut self, code: &str) -> Self {
        code.clone_into(&mut self.describe_policy);
        self
    }

    /// Does this (wasm text, leaving nothing on the stack) before a review answers. The request
    /// lies at `$request`, `$length` bytes long; `(return ...)` answers with another pointer.
    pub fn review_wat(mut self, code: &str) -> Self {
        self.review = format!("{code} {}", self.review);
        self
    }
}
