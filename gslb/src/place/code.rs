//! What a place is called: `CN`, `CN-SH`, or `JP/tokyo` where a file knows a name and no code.
//!
//! Country codes are ISO 3166-1, codes after the hyphen ISO 3166-2. A province of China is called
//! by its letters (`CN-SH`) however a file or the configuration names it: by the number that it
//! had until 2017 (`CN-31`), or in English (`CN/Shanghai`).

/// Provinces of China: number until 2017, letters since, and how English names begin.
const PROVINCES: [(&str, &str, &[&str]); 31] = [
    ("11", "BJ", &["beijing"]),
    ("12", "TJ", &["tianjin"]),
    ("13", "HE", &["hebei"]),
    ("14", "SX", &["shanxi"]),
    ("15", "NM", &["inner mongolia", "nei mongol", "neimenggu"]),
    ("21", "LN", &["liaoning"]),
    ("22", "JL", &["jilin"]),
    ("23", "HL", &["heilongjiang"]),
    ("31", "SH", &["shanghai"]),
    ("32", "JS", &["jiangsu"]),
    ("33", "ZJ", &["zhejiang"]),
    ("34", "AH", &["anhui"]),
    ("35", "FJ", &["fujian"]),
    ("36", "JX", &["jiangxi"]),
    ("37", "SD", &["shandong"]),
    ("41", "HA", &["henan"]),
    ("42", "HB", &["hubei"]),
    ("43", "HN", &["hunan"]),
    ("44", "GD", &["guangdong"]),
    ("45", "GX", &["guangxi"]),
    ("46", "HI", &["hainan"]),
    ("50", "CQ", &["chongqing"]),
    ("51", "SC", &["sichuan"]),
    ("52", "GZ", &["guizhou"]),
    ("53", "YN", &["yunnan"]),
    ("54", "XZ", &["tibet", "xizang"]),
    ("61", "SN", &["shaanxi"]),
    ("62", "GS", &["gansu"]),
    ("63", "QH", &["qinghai"]),
    ("64", "NX", &["ningxia"]),
    ("65", "XJ", &["xinjiang"]),
];

/// What a file knows of the part of a country.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Part<'a> {
    /// Nothing.
    #[default]
    Unknown,
    /// What follows the hyphen in ISO 3166-2.
    Code(&'a str),
    /// A name in English.
    Name(&'a str),
}

/// The one name of a place; nothing if the country is no two letters.
pub(super) fn code(country: &str, part: Part<'_>) -> Option<String> {
    if country.len() != 2 || !country.bytes().all(|it| it.is_ascii_alphabetic()) {
        return None;
    }
    let country = country.to_ascii_uppercase();
    let in_china = country == "CN";
    Some(match part {
        Part::Unknown | Part::Code("") | Part::Name("") => country,
        Part::Code(part) => {
            let part = part.to_ascii_uppercase();
            let letters = in_china.then(|| PROVINCES.iter().find(|it| it.0 == part)).flatten();
            format!("{country}-{}", letters.map_or(part.as_str(), |it| it.1))
        }
        Part::Name(name) => {
            let name = name.to_lowercase();
            let is_it = |names: &[&str]| names.iter().any(|it| name.starts_with(it));
            match PROVINCES.iter().find(|it| in_china && is_it(it.2)) {
                Some((_, letters, _)) => format!("{country}-{letters}"),
                None => format!("{country}/{name}"),
            }
        }
    })
}

/// The one name of a place as an operator writes it: `CN`, `CN-SH`, `CN-31`, `CN/Shanghai`.
pub(super) fn parse(text: &str) -> Option<String> {
    if let Some((country, name)) = text.split_once('/') {
        return code(country, Part::Name(name.trim()));
    }
    match text.split_once('-') {
        Some((country, part)) => code(country, Part::Code(part)),
        None => code(text, Part::Unknown),
    }
}

/// The country of a place by its one name.
pub(super) fn country(code: &str) -> &str {
    code.get(..2).unwrap_or(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_province_has_one_name_however_it_is_called() {
        for text in ["CN-SH", "CN-31", "cn-sh", "CN/Shanghai", "CN/ShangHai Shi"] {
            assert_eq!(parse(text).as_deref(), Some("CN-SH"), "{text}");
        }
        assert_eq!(parse("CN/Shanxi").as_deref(), Some("CN-SX"));
        assert_eq!(parse("CN/Shaanxi").as_deref(), Some("CN-SN"));
        assert_eq!(parse("CN/Guangxi Zhuangzu").as_deref(), Some("CN-GX"));
        assert_eq!(parse("CN/Nei Mongol").as_deref(), Some("CN-NM"));
    }

    #[test]
    fn other_countries_keep_what_the_file_says() {
        assert_eq!(parse("JP-13").as_deref(), Some("JP-13"));
        assert_eq!(parse("jp/Tokyo").as_deref(), Some("JP/tokyo"));
        assert_eq!(parse("US").as_deref(), Some("US"));
        assert_eq!(code("DE", Part::Name("")).as_deref(), Some("DE"));
    }

    #[test]
    fn what_is_no_country_is_none() {
        for text in ["", "C", "CHN", "C1", "/Shanghai", "-31", "中-31"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_country_is_what_comes_first() {
        assert_eq!(country("CN-SH"), "CN");
        assert_eq!(country("JP/tokyo"), "JP");
        assert_eq!(country("US"), "US");
    }
}
