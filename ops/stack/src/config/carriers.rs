//! Names of carriers that the configuration gives and uses: `carrier = "softbank"` for `"c5"`.

use gslb::place::{Carriers, Network};
use kit::config::{Dict, Value};

/// Where the configuration names a carrier: lists, in each of which every entry may.
const LISTS: [&[&str]; 2] = [&["link", "listeners"], &["gslb", "policy", "lines"]];
/// Where it gives them names.
const NAMES: [&str; 3] = ["gslb", "place", "carriers"];

/// Puts numbers where names are. What is no such name, or no such list, stays for the reader of
/// the configuration to refuse.
pub(super) fn number(dict: &mut Dict) {
    let networks = find(dict, &NAMES).and_then(|it| it.deserialize::<Vec<Network>>().ok());
    let networks = networks.unwrap_or_default();
    let Ok(carriers) = Carriers::new(&networks) else { return };
    for list in LISTS {
        let Some(Value::Array(_, entries)) = find(dict, list) else { continue };
        for entry in entries {
            let Value::Dict(_, entry) = entry else { continue };
            let Some(Value::String(_, word)) = entry.get_mut("carrier") else { continue };
            if let Some(carrier) = carriers.find(word) {
                carrier.name().clone_into(word);
            }
        }
    }
}

fn find<'a>(dict: &'a mut Dict, path: &[&str]) -> Option<&'a mut Value> {
    let (first, rest) = path.split_first()?;
    let value = dict.get_mut(*first)?;
    match (rest, value) {
        ([], value) => Some(value),
        (rest, Value::Dict(_, dict)) => find(dict, rest),
        (_, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use proto::address::Carrier;

    use crate::Config;

    #[test]
    fn a_carrier_is_called_by_the_name_that_the_configuration_gives_it() {
        let names = "[[gslb.place.carriers]]\nnumber = 5\nname = 'softbank'\nasns = [17676]\n";
        let listeners = ["softbank", "kr", "telecom", "c15"].map(listener).concat();
        let line = "[[gslb.policy.lines]]\nmachine_room = 'a'\ncarrier = 'softbank'\n";

        let config = load(&[names, &listeners, line].concat()).unwrap();

        let listeners: Vec<Carrier> = config.link.listeners.iter().map(|it| it.carrier).collect();
        assert_eq!(listeners, [Carrier::C5, Carrier::C6, Carrier::Telecom, Carrier::C15]);
        assert_eq!(config.gslb.policy.lines[0].carrier, Carrier::C5);
    }

    #[test]
    fn an_unknown_name_is_refused_with_its_place() {
        let refused = load(&listener("softbank")).unwrap_err();

        assert!(refused.contains("link.listeners.0.carrier"), "{refused}");
    }

    fn listener(carrier: &str) -> String {
        format!(
            "[[link.listeners]]\nlisten = '127.0.0.1:1'\ntransport = 'tls'\nhost = 'a'\nport = 1\n\
             carrier = '{carrier}'\n"
        )
    }

    fn load(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("barrage.toml");
        std::fs::write(&file, text).unwrap();
        Config::load(Some(&file)).map_err(|it| it.to_string())
    }
}
