//! Configuration: defaults, then a TOML file, then the environment; each overrides the one before.
//!
//! `[link] sessions_max = 5` in the file is `BARRAGE_LINK__SESSIONS_MAX=5` in the environment.
//! Lists are written as in TOML: `BARRAGE_GSLB__REGIONS=["east", "west"]`. Whatever the
//! configuration does not know is refused, with the place where it stands.

mod explain;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use figment::util::nest;
use figment::value::Map;
use figment::{Figment, Metadata, Profile, Provider};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use figment::value::{Dict, Value};

/// What a variable's name begins with.
pub const PREFIX: &str = "BARRAGE_";
/// What stands between the levels of a variable's name.
pub const SEPARATOR: &str = "__";

/// Variables that begin alike and are no configuration: secrets for one command, where tests find
/// their tools, and where they have a process die.
const OTHERS: [&str; 4] =
    ["BARRAGE_OPERATOR_KEY", "BARRAGE_TOKEN_MASTER", "BARRAGE_TOOLS", crate::dying::DIE_AT];

/// Why there is no configuration. The text says what to change, and where.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A key or a value is wrong.
    #[error("{0}")]
    Invalid(String),
}

/// The effective configuration. `T` and its sections bring the defaults (`serde(default)`) and
/// refuse unknown keys (`serde(deny_unknown_fields)`).
///
/// # Errors
/// [`ConfigError`], which names the key and the file or variable it stands in.
pub fn load<T: DeserializeOwned>(file: Option<&Path>) -> Result<T, ConfigError> {
    load_from(file, environment())
}

/// As [`load`], once `edit` has gone over what file and environment say together: for words that
/// one part of a configuration makes and another uses.
///
/// # Errors
/// As [`load`].
pub fn load_edited<T: DeserializeOwned>(
    file: Option<&Path>,
    edit: impl FnOnce(&mut Dict),
) -> Result<T, ConfigError> {
    let sources = sources(file, environment())?;
    let mut dict = extract(&merge(&sources), &sources)?;
    edit(&mut dict);
    let edited = Source { name: String::new(), dict };
    extract(&Figment::from(edited), &sources)
}

fn environment() -> impl Iterator<Item = (String, String)> {
    // `vars` would panic at a variable of somebody else that is no Unicode.
    let text = |it: OsString| it.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

/// As [`load`], with the environment as an argument.
///
/// # Errors
/// As [`load`].
pub fn load_from<T: DeserializeOwned>(
    file: Option<&Path>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<T, ConfigError> {
    let sources = sources(file, variables)?;
    extract(&merge(&sources), &sources)
}

/// File and variables, each of which overrides the ones before.
fn sources(
    file: Option<&Path>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Vec<Source>, ConfigError> {
    let mut sources = Vec::new();
    if let Some(path) = file {
        sources.push(Source::file(path)?);
    }
    let is_ours = |name: &str| name.starts_with(PREFIX) && !OTHERS.contains(&name);
    let mut variables: Vec<_> = variables.into_iter().filter(|(name, _)| is_ours(name)).collect();
    variables.sort();
    sources.extend(variables.iter().map(|(name, text)| Source::variable(name, text)));
    Ok(sources)
}

fn merge(sources: &[Source]) -> Figment {
    sources.iter().fold(Figment::new(), Figment::merge)
}

/// What a figment holds; an error names the source that sets the key.
fn extract<T: DeserializeOwned>(figment: &Figment, sources: &[Source]) -> Result<T, ConfigError> {
    figment.extract().map_err(|error| {
        let lines = error.into_iter().map(|it| explain::explain(&it, sources));
        ConfigError::Invalid(lines.collect::<Vec<_>>().join("\n"))
    })
}

/// Whether `file` and the environment make a configuration.
///
/// # Errors
/// As [`load`].
pub fn check<T: DeserializeOwned>(file: Option<&Path>) -> Result<(), ConfigError> {
    load::<T>(file).map(drop)
}

/// The whole effective configuration as TOML, which [`load`] reads back. Secrets are as their own
/// `Serialize` writes them.
#[must_use]
pub fn print<T: Serialize>(config: &T) -> String {
    // Only a number over 2^63 or a key that is no text fails, and the reader must see it.
    toml::to_string(config).unwrap_or_else(|error| format!("# cannot be printed: {error}\n"))
}

/// One file or one variable.
struct Source {
    /// As the error names it.
    name: String,
    dict: Dict,
}

impl Source {
    fn file(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::File { path: path.to_owned(), source })?;
        let name = path.display().to_string();
        match toml::from_str(&text) {
            Ok(dict) => Ok(Self { name, dict }),
            Err(error) => Err(ConfigError::Invalid(format!("{name} is no TOML: {error}"))),
        }
    }

    fn variable(name: &str, text: &str) -> Self {
        let key = name.trim_start_matches(PREFIX).to_lowercase().replace(SEPARATOR, ".");
        let value = text.parse().expect("figment reads every text as some value");
        let dict = nest(&key, value).into_dict().unwrap_or_default();
        Self { name: name.to_owned(), dict }
    }

    /// Whether it sets the key at `path`, in which numbers are places in lists.
    fn sets(&self, path: &[&str]) -> bool {
        let Some((first, rest)) = path.split_first() else { return true };
        let Some(value) = self.dict.get(*first) else { return false };
        let found = rest.iter().try_fold(value, |value, key| match value {
            Value::Dict(_, dict) => dict.get(*key),
            Value::Array(_, list) => list.get(key.parse::<usize>().ok()?),
            Value::String(..)
            | Value::Char(..)
            | Value::Bool(..)
            | Value::Num(..)
            | Value::Empty(..) => None,
        });
        found.is_some()
    }
}

impl Provider for Source {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> figment::Result<Map<Profile, Dict>> {
        Ok(Profile::Default.collect(self.dict.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq, Serialize)]
    #[serde(default, deny_unknown_fields)]
    struct Config {
        name: String,
        link: Link,
    }

    #[derive(Debug, Deserialize, PartialEq, Serialize)]
    #[serde(default, deny_unknown_fields)]
    struct Link {
        sessions_max: u16,
        drain: bool,
        regions: Vec<String>,
        app: Vec<App>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq, Serialize)]
    #[serde(default, deny_unknown_fields)]
    struct App {
        id: u32,
    }

    impl Default for Config {
        fn default() -> Self {
            Self { name: "one".to_owned(), link: Link::default() }
        }
    }

    impl Default for Link {
        fn default() -> Self {
            Self { sessions_max: 100, drain: false, regions: vec![], app: vec![] }
        }
    }

    #[test]
    fn variables_for_commands_and_tests_are_no_configuration() {
        let config = given("", &[("BARRAGE_OPERATOR_KEY", "x"), ("BARRAGE_TOOLS", "y")]);

        assert!(config.is_ok());
        assert!(given("", &[("BARRAGE_OPERATOR_KEYS", "x")]).is_err());
    }

    #[test]
    fn nothing_given_is_the_defaults() {
        assert_eq!(load_from::<Config>(None, []).unwrap(), Config::default());
    }

    #[test]
    fn the_file_overrides_defaults_and_the_environment_both() {
        let file = "name = 'two'\n[link]\nsessions_max = 5\ndrain = true\n";

        let config = given(file, &[("BARRAGE_LINK__SESSIONS_MAX", "7")]).unwrap();

        assert_eq!(config.name, "two");
        assert_eq!(config.link, Link { sessions_max: 7, drain: true, ..Link::default() });
    }

    #[test]
    fn a_variable_holds_any_kind_of_value() {
        let variables = [
            ("BARRAGE_NAME", "three"),
            ("BARRAGE_LINK__SESSIONS_MAX", "9"),
            ("BARRAGE_LINK__DRAIN", "true"),
            ("BARRAGE_LINK__REGIONS", "[\"east\", \"west\"]"),
            ("BARRAGE_LINK__APP", "[{id=1}, {id=2}]"),
            ("HOME", "/"),
        ];

        let config = given("", &variables).unwrap();

        let regions = vec!["east".to_owned(), "west".to_owned()];
        let app = vec![App { id: 1 }, App { id: 2 }];
        let link = Link { sessions_max: 9, drain: true, regions, app };
        assert_eq!(config, Config { name: "three".to_owned(), link });
    }

    #[test]
    fn what_is_printed_loads_again() {
        let link = Link { app: vec![App { id: 4 }], ..Link::default() };
        let config = Config { name: "four".to_owned(), link };

        assert_eq!(given(&print(&config), &[]).unwrap(), config);
    }

    #[test]
    fn what_is_edited_is_read_and_explained_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("barrage.toml");
        fs::write(&file, "name = 'two'\n[link]\nregions = ['a']\n[[link.app]]\nid = 3\n").unwrap();
        let edit = |dict: &mut Dict| drop(dict.insert("name".to_owned(), Value::from("three")));

        let edited: Config = load_edited(Some(&file), edit).unwrap();

        assert_eq!(edited.name, "three");
        let plain: Config = load_from(Some(&file), []).unwrap();
        assert_eq!(edited.link, plain.link);
        fs::write(&file, "[link]\nsession_max = 1\n").unwrap();
        let refused = load_edited::<Config>(Some(&file), |_| {}).unwrap_err().to_string();
        let place = format!("unknown key `link.session_max` in {}", file.display());
        assert!(refused.starts_with(&place), "{refused}");
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_place_and_the_nearest_name() {
        check(
            "[link]\nsession_max = 5\n",
            &[("BARRAGE_LINK__DRAIN", "true")],
            "unknown key `link.session_max` in FILE: did you mean `sessions_max`? \
             Remove it, or use one of: sessions_max, drain, regions, app",
        );
        check(
            "[link]\nsessions_max = 5\n",
            &[("BARRAGE_LINK__DRAINS", "true")],
            "unknown key `link.drains` in BARRAGE_LINK__DRAINS: did you mean `drain`? \
             Remove it, or use one of: sessions_max, drain, regions, app",
        );
        check(
            "",
            &[("BARRAGE_COLOUR", "red")],
            "unknown key `colour` in BARRAGE_COLOUR. Remove it, or use one of: name, link",
        );
        check(
            "[[link.app]]\nid = 1\n[[link.app]]\nidx = 1\n",
            &[],
            "unknown key `link.app.1.idx` in FILE: did you mean `id`? \
             Remove it, or use one of: id",
        );
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_place() {
        check(
            "[link]\nsessions_max = 70000\n",
            &[],
            "`link.sessions_max` in FILE: found 70000, expected u16",
        );
        check(
            "",
            &[("BARRAGE_LINK__SESSIONS_MAX", "many")],
            "`link.sessions_max` in BARRAGE_LINK__SESSIONS_MAX: found a text, expected u16",
        );
        check(
            "",
            &[("BARRAGE_NAME", "12345")],
            "`name` in BARRAGE_NAME: found a number, expected a string; \
             put it in double quotes to make it a text",
        );
        check("link = 5", &[], "`link` in FILE: found 5, expected struct Link");
    }

    #[test]
    fn a_file_that_is_absent_or_no_toml_is_named() {
        let absent = load_from::<Config>(Some(Path::new("absent.toml")), []).unwrap_err();
        assert_eq!(absent.to_string(), "cannot read the configuration file absent.toml");

        let broken = given("[link", &[]).unwrap_err().to_string();
        assert!(broken.contains("is no TOML"), "{broken}");
    }

    fn check(file: &str, variables: &[(&str, &str)], expected: &str) {
        assert_eq!(given(file, variables).unwrap_err().to_string(), expected);
    }

    /// Errors name the file `FILE`.
    fn given(file: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("barrage.toml");
        fs::write(&path, file).unwrap();
        let variables = variables.iter().map(|&(name, text)| (name.to_owned(), text.to_owned()));
        load_from(Some(&path), variables).map_err(|error| match error {
            ConfigError::Invalid(text) => {
                ConfigError::Invalid(text.replace(&path.display().to_string(), "FILE"))
            }
            ConfigError::File { .. } => error,
        })
    }
}
