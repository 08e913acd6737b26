//! The limits of a run, one line each.

use std::{num::NonZeroU64, time::Duration};

use prowess_sandbox::RunLimits;

use super::{
    origin::Setting,
    right::ProjectRight,
    table::{Row, row},
    value::Bytes,
};

/// A setting that is a field of [`RunLimits`], whose type has no unit and may be invalid.
trait Limit: Copy {
    type Field;

    fn from_field(field: Self::Field) -> Self;

    fn to_field(self) -> Self::Field;
}

/// Makes the table `[limits]` from one line for each field of [`RunLimits`], whose default is the
/// setting's: the type of its value, its flag, an example and a description.
macro_rules! limits {
    ($($name:ident: $value:ty, $flag:expr, $example:literal, $about:literal;)+) => {
        /// The limits of a run.
        #[derive(Debug, Clone, PartialEq)]
        pub struct LimitSettings {
            $(#[doc = $about] pub $name: Setting<$value>,)+
        }

        impl LimitSettings {
            /// Returns the limits as the sandbox takes them.
            pub fn run_limits(&self) -> RunLimits {
                RunLimits { $($name: self.$name.value.to_field(),)+ }
            }

            /// Returns every limit, in order.
            pub(super) fn rows(&mut self) -> Vec<Row<'_>> {
                let right = ProjectRight::Stricter;
                vec![$(
                    row(
                        concat!("limits.", stringify!($name)),
                        &mut self.$name,
                        right,
                        $flag,
                        $example,
                        $about,
                    ),
                )+]
            }
        }

        impl Default for LimitSettings {
            fn default() -> Self {
                let RunLimits { $($name),+ } = RunLimits::default();
                Self { $($name: Setting::new(Limit::from_field($name)),)+ }
            }
        }
    };
}

limits! {
    timeout: Duration, Some("--timeout"), "\"10s\"", "How long a run may take.";
    idle: Option<Duration>, None, "\"30s\"", "How long a run may print nothing.";
    cpu: Duration, None, "\"60s\"", "How much processor time a run may use.";
    output: Bytes, None, "\"256 KiB\"", "How much is kept of standard output, and as much of standard error.";
    memory: Bytes, None, "\"512 MiB\"", "How much memory a run may use.";
    file: Bytes, None, "\"10 MiB\"", "The largest file that a run may write.";
    work: Bytes, None, "\"100 MiB\"", "How much a run may write to its work directory in total.";
    processes: NonZeroU64, None, "32", "How many processes a run may have at once.";
    descriptors: NonZeroU64, None, "128", "How many files each process of a run may have open.";
}

impl Limit for Duration {
    type Field = Self;

    fn from_field(field: Self) -> Self {
        field
    }

    fn to_field(self) -> Self {
        self
    }
}

impl Limit for Option<Duration> {
    type Field = Self;

    fn from_field(field: Self) -> Self {
        field
    }

    fn to_field(self) -> Self {
        self
    }
}

impl Limit for Bytes {
    type Field = u64;

    fn from_field(field: u64) -> Self {
        Self(field)
    }

    fn to_field(self) -> u64 {
        self.0
    }
}

impl Limit for NonZeroU64 {
    type Field = u64;

    fn from_field(field: u64) -> Self {
        Self::new(field).expect("a script needs a process and a file")
    }

    fn to_field(self) -> u64 {
        self.get()
    }
}
