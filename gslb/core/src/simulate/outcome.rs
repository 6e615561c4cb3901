//! How it went.

use std::fmt;

use proto::address::Carrier;

/// How it went.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// Nodes of the fleet.
    pub nodes: usize,
    /// gslb processes.
    pub replicas: u32,
    /// Milliseconds played.
    pub run_ms: u64,
    /// What became of the viewers, by their carrier.
    pub carriers: Vec<ByCarrier>,
    /// Where they were sent, by group of nodes.
    pub groups: Vec<ByGroup>,
    /// Viewers who tried a second or third address.
    pub tried_again: u64,
    /// Viewers who reached none of their addresses.
    pub lost: u64,
    /// How far the node that is farthest from its even share is from it, in thousandths. A share is
    /// even if it is by logins a second, among the nodes of the same region and carriers that
    /// nothing happened to; 0 where there are no two of them.
    pub spread_permille: u64,
    /// Connections within any one second at the node that had most for what it can log in, above
    /// that, in thousandths.
    pub overshoot_permille: u64,
    /// The run in pieces.
    pub rows: Vec<Row>,
}

/// What became of one carrier's viewers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ByCarrier {
    /// Whose network they are on.
    pub carrier: Carrier,
    /// All of them.
    pub arrived: u64,
    /// Sent to their own carrier's network.
    pub own: u64,
    /// Sent to another network.
    pub elsewhere: u64,
    /// Given no address.
    pub refused: u64,
}

/// Where viewers were sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ByGroup {
    /// As the fleet file names it.
    pub name: String,
    /// Nodes of the group.
    pub nodes: usize,
    /// Viewers sent there first.
    pub sent: u64,
    /// Sessions at the end.
    pub sessions: u64,
}

/// A piece of the run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Row {
    /// When it begins, in milliseconds.
    pub from_ms: u64,
    /// Viewers who came.
    pub arrived: u64,
    /// Viewers who were given no address.
    pub refused: u64,
    /// Connections to a second or third address.
    pub tried_again: u64,
    /// Nodes that some viewer was sent to first.
    pub nodes: u64,
    /// Of these, the most that one was sent, for what it can log in meanwhile, in thousandths.
    pub busiest_permille: u64,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, replicas, run_ms, tried_again, lost, .. } = self;
        let (spread, overshoot) = (percent(self.spread_permille), percent(self.overshoot_permille));
        writeln!(f, "{nodes} nodes, gslb processes: {replicas}, {run_ms} ms")?;
        writeln!(f, "spread      {spread:>9} % from an even share at most")?;
        writeln!(f, "overshoot   {overshoot:>9} % above a node's logins a second at most")?;
        writeln!(f, "tried again {tried_again:>9} viewers")?;
        writeln!(f, "lost        {lost:>9} viewers")?;

        writeln!(f, "\ncarrier     arrived  own network  elsewhere   refused")?;
        for it in &self.carriers {
            let carrier = format!("{:?}", it.carrier).to_lowercase();
            let ByCarrier { arrived, own, elsewhere, refused, .. } = it;
            writeln!(f, "{carrier:<9}{arrived:>10}{own:>13}{elsewhere:>11}{refused:>10}")?;
        }
        writeln!(f, "\ngroup                  nodes      sent  sessions")?;
        for ByGroup { name, nodes, sent, sessions } in &self.groups {
            writeln!(f, "{name:<22}{nodes:>6}{sent:>10}{sessions:>10}")?;
        }
        writeln!(f, "\nfrom ms   arrived   refused     again   nodes   busiest")?;
        for it in &self.rows {
            let Row { from_ms, arrived, refused, tried_again, nodes, .. } = it;
            let busiest = percent(it.busiest_permille);
            write!(f, "{from_ms:>7}{arrived:>10}{refused:>10}{tried_again:>10}")?;
            writeln!(f, "{nodes:>8}{busiest:>8} %")?;
        }
        Ok(())
    }
}

fn percent(permille: u64) -> String {
    format!("{}.{}", permille / 10, permille % 10)
}
