//! What a benchmark prints.

use serde::Serialize;

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Dotted and stable.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// Its unit, such as `1/s/core`.
    pub unit: &'static str,
    /// Who else was measured in the same run.
    pub peer: Option<&'static str>,
    /// Ours divided by the peer's.
    pub ratio: Option<f64>,
}

impl Line {
    /// A figure without a peer.
    #[must_use]
    pub fn alone(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, peer: None, ratio: None }
    }

    /// The line for people.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { name, value, unit, .. } = self;
        match (self.peer, self.ratio) {
            (Some(peer), Some(ratio)) => {
                format!("{name:<32} {value:>14.1} {unit}  {ratio:.2} × {peer}")
            }
            _ => format!("{name:<32} {value:>14.1} {unit}"),
        }
    }
}
