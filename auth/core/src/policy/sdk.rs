//! Which SDK versions are served.

use std::cmp::Ordering;

use proto::control::Fact;
use proto::limits::WORD_BYTES_MAX;
use proto::policy::{SDK_RULES_MAX, SdkAct, SdkFact, SdkRule};

/// The rules in force; at first none, and every version is served.
#[derive(Clone, Debug, Default)]
pub struct SdkPolicy(SdkFact);

/// Why rules cannot be kept.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SdkRuleError {
    /// More than [`SDK_RULES_MAX`].
    #[error("{rules} rules are more than {SDK_RULES_MAX}")]
    TooMany {
        /// Rules given.
        rules: usize,
    },
    /// A name that no SDK can have.
    #[error("an SDK's name has more than {WORD_BYTES_MAX} bytes")]
    Name,
    /// Not numbers with dots between.
    #[error("{version:?} is not a version such as 1.4.0")]
    Version {
        /// Text given.
        version: String,
    },
}

impl SdkPolicy {
    /// Takes note of a fact; older ones than known, and facts about other things, are passed over.
    pub fn handle(&mut self, fact: &Fact) {
        if let Fact::Sdk(fact) = fact
            && fact.version >= self.0.version
        {
            self.0 = fact.clone();
        }
    }

    /// What happens to a client for its SDK's version; the first rule that fits decides.
    ///
    /// A version that is none is older than every version.
    #[must_use]
    pub fn act(&self, sdk: &str, version: &str) -> SdkAct {
        let fits = |rule: &&SdkRule| {
            rule.sdk.as_deref().is_none_or(|it| it == sdk)
                && rule.from.as_deref().is_none_or(|it| compare(version, it).is_ge())
                && rule.below.as_deref().is_none_or(|it| compare(version, it).is_lt())
        };
        self.0.rules.iter().take(SDK_RULES_MAX).find(fits).map_or(SdkAct::Allow, |it| it.act)
    }

    /// The rules in force.
    #[must_use]
    pub const fn rules(&self) -> &SdkFact {
        &self.0
    }

    /// Checks rules before they are published.
    pub fn check(rules: &[SdkRule]) -> Result<(), SdkRuleError> {
        if rules.len() > SDK_RULES_MAX {
            return Err(SdkRuleError::TooMany { rules: rules.len() });
        }
        if rules.iter().flat_map(|it| &it.sdk).any(|it| it.len() > WORD_BYTES_MAX) {
            return Err(SdkRuleError::Name);
        }
        for version in rules.iter().flat_map(|it| it.from.iter().chain(&it.below)) {
            if parse(version).is_none() {
                return Err(SdkRuleError::Version { version: version.clone() });
            }
        }
        Ok(())
    }
}

/// Major, minor, patch; what is missing is 0, and what follows `-` or `+` does not count.
fn parse(version: &str) -> Option<[u32; 3]> {
    let numbers = version.split(['-', '+']).next()?;
    let mut parsed = [0; 3];
    let mut given = numbers.split('.');
    for part in &mut parsed {
        let Some(text) = given.next() else { break };
        let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        *part = is_number.then(|| text.parse().ok())??;
    }
    given.next().is_none().then_some(parsed)
}

fn compare(a: &str, b: &str) -> Ordering {
    parse(a).cmp(&parse(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(sdk: Option<&str>, from: Option<&str>, below: Option<&str>, act: SdkAct) -> SdkRule {
        let text = |it: Option<&str>| it.map(str::to_owned);
        SdkRule { sdk: text(sdk), from: text(from), below: text(below), act }
    }

    fn policy(rules: Vec<SdkRule>) -> SdkPolicy {
        let mut policy = SdkPolicy::default();
        policy.handle(&Fact::Sdk(SdkFact { version: 1, rules }));
        policy
    }

    #[test]
    fn without_a_rule_every_version_is_served() {
        assert_eq!(SdkPolicy::default().act("barrage-rust", "0.0.1"), SdkAct::Allow);
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy = policy(vec![
            rule(Some("ts"), None, Some("1.2"), SdkAct::Refuse),
            rule(Some("ts"), Some("1.2.0"), Some("2.0.0"), SdkAct::Warn),
            rule(None, Some("9"), None, SdkAct::Refuse),
        ]);
        let check =
            |sdk, version, act| assert_eq!(policy.act(sdk, version), act, "{sdk} {version}");

        check("ts", "1.1.99", SdkAct::Refuse);
        check("ts", "1.2.0", SdkAct::Warn);
        check("ts", "1.10.0-beta.1", SdkAct::Warn);
        check("ts", "2.0.0", SdkAct::Allow);
        check("rust", "1.0.0", SdkAct::Allow);
        check("rust", "10.0.0", SdkAct::Refuse);
    }

    #[test]
    fn a_version_that_is_none_is_older_than_every_version() {
        let policy = policy(vec![rule(None, None, Some("0.0.1"), SdkAct::Refuse)]);

        for odd in ["", "x", "1.x", "1.2.3.4", "+1", "99999999999"] {
            assert_eq!(policy.act("any", odd), SdkAct::Refuse, "{odd:?}");
        }
    }

    #[test]
    fn an_older_list_does_not_replace_a_newer_one() {
        let mut policy = policy(vec![rule(None, None, None, SdkAct::Warn)]);

        policy.handle(&Fact::Sdk(SdkFact { version: 0, rules: Vec::new() }));

        assert_eq!(policy.act("any", "1.0.0"), SdkAct::Warn);
    }

    #[test]
    fn rules_are_checked_before_they_are_published() {
        let wrong = rule(None, Some("1.x"), None, SdkAct::Warn);
        let long = rule(Some(&"x".repeat(65)), None, None, SdkAct::Warn);

        assert_eq!(SdkPolicy::check(&[]), Ok(()));
        let version = SdkRuleError::Version { version: "1.x".to_owned() };
        assert_eq!(SdkPolicy::check(&[wrong]), Err(version));
        assert_eq!(SdkPolicy::check(&[long]), Err(SdkRuleError::Name));
        let many = vec![rule(None, None, None, SdkAct::Warn); 65];
        assert_eq!(SdkPolicy::check(&many), Err(SdkRuleError::TooMany { rules: 65 }));
    }
}
