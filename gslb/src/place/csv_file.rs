//! CSV as ip-location-db has it: the one door to the `csv` crate.
//!
//! A line is `start,end,…`, both included, as addresses or as numbers, and then either
//! `country`, or `asn,organisation`, or `country,state1,state2,city,postcode,latitude,longitude,
//! timezone`. Lines ascend. A line with an empty country or system says nothing.

use std::io::{BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use csv::{ByteRecord, ReaderBuilder};

use super::code::{self, Part};
use super::file::{FILE_BYTES_MAX, Layer, Why};
use super::rows::key;

const COUNTRY_COLUMNS: usize = 3;
const ASN_COLUMNS: usize = 4;
const CITY_COLUMNS: usize = 10;

/// Reads all lines; an error comes with the line it is in.
pub(super) fn read(bounded: impl Read) -> Result<Layer, (u64, Why)> {
    let mut reader =
        ReaderBuilder::new().has_headers(false).flexible(true).from_reader(BufReader::new(bounded));
    let mut layer = Layer::default();
    let mut record = ByteRecord::new();
    let mut columns = None;
    loop {
        let line = reader.position().line();
        let more = reader.read_byte_record(&mut record);
        if !more.map_err(|it| (line, Why::Csv(it.to_string())))? {
            return Ok(layer);
        }
        if reader.position().byte() > FILE_BYTES_MAX {
            return Err((line, Why::TooLong));
        }
        let len = *columns.get_or_insert(record.len());
        if record.len() != len {
            return Err((line, Why::Columns(record.len())));
        }
        take(&mut layer, &record).map_err(|why| (line, why))?;
    }
}

fn take(layer: &mut Layer, record: &ByteRecord) -> Result<(), Why> {
    let column = |index| text(record, index);
    if ![COUNTRY_COLUMNS, ASN_COLUMNS, CITY_COLUMNS].contains(&record.len()) {
        return Err(Why::Columns(record.len()));
    }
    let (start, end) = (address(&column(0))?, address(&column(1))?);
    if start.is_ipv4() != end.is_ipv4() {
        return Err(Why::Families);
    }
    let (start, end, said) = (key(start), key(end), column(2));
    if said.is_empty() {
        return Ok(());
    }
    if record.len() == ASN_COLUMNS {
        let asn = said.parse().map_err(|_| Why::Asn(said.clone().into_owned()))?;
        return layer.push_asn(start, end, asn);
    }
    let state = if record.len() == CITY_COLUMNS { column(3) } else { "".into() };
    let code = code::code(&said, Part::Name(&state));
    layer.push_place(start, end, &code.ok_or_else(|| Why::Country(said.into_owned()))?)
}

/// A column; bytes that are no UTF-8 are replaced, and then it is no address, number or country.
fn text(record: &ByteRecord, index: usize) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(record.get(index).unwrap_or_default())
}

/// An address, or its number: IPv4 below 2^32, which in IPv6 is nobody's.
fn address(text: &str) -> Result<IpAddr, Why> {
    let number = || {
        let number: u128 = text.parse().ok()?;
        let small = u32::try_from(number).map(|it| Ipv4Addr::from(it).into());
        Some(small.unwrap_or_else(|_| IpAddr::V6(Ipv6Addr::from(number))))
    };
    let parsed = text.parse::<IpAddr>().ok().or_else(number);
    parsed.map(|it| it.to_canonical()).ok_or_else(|| Why::Address(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn systems_are_read_from_addresses_and_from_numbers() {
        let texts = [
            "1.0.0.0,1.0.0.255,13335,\"Cloudflare, Inc.\"\n1.0.4.0,1.0.7.255,4134,Chinanet\n",
            "16777216,16777471,13335,\"Cloudflare, Inc.\"\n16778240,16779263,4134,Chinanet\n",
        ];

        for text in texts {
            let layer = read(text.as_bytes()).unwrap();
            assert_eq!(asn(&layer, "1.0.0.255"), Some(13335));
            assert_eq!(asn(&layer, "1.0.1.0"), None);
            assert_eq!(asn(&layer, "1.0.5.0"), Some(4134));
        }
    }

    #[test]
    fn ipv6_is_read_from_addresses_and_from_numbers() {
        let number = Ipv6Addr::from_bits;
        let (first, last) = (0x240e << 112, (0x240f << 112) - 1);
        let numbers = format!("{first},{last},4134,Chinanet\n");
        let addresses = format!("{},{},4134,Chinanet\n", number(first), number(last));

        for text in [numbers, addresses] {
            let layer = read(text.as_bytes()).unwrap();
            assert_eq!(asn(&layer, "240e::1"), Some(4134));
            assert_eq!(asn(&layer, "240f::"), None);
        }
    }

    #[test]
    fn countries_and_cities_are_places() {
        let country =
            read(&b"1.0.0.0,1.0.0.255,AU\n1.0.1.0,1.0.1.255,\n1.0.2.0,1.0.2.9,cn\n"[..]).unwrap();
        let city = read(&b"1.0.0.0,1.0.0.9,CN,Shanghai,,Shanghai,,31.2,121.4,Asia/Shanghai\n"[..])
            .unwrap();

        assert_eq!(place(&country, "1.0.0.1"), Some("AU"));
        assert_eq!(place(&country, "1.0.1.1"), None);
        assert_eq!(place(&country, "1.0.2.1"), Some("CN"));
        assert_eq!(place(&city, "1.0.0.1"), Some("CN-SH"));
    }

    #[test]
    fn a_bad_line_is_named_with_its_reason() {
        let good = "1.0.0.0,1.0.0.255,13335,x\n";
        let check = |bad: &str, expected: &str| {
            let (line, why) = read(format!("{good}{bad}\n").as_bytes()).unwrap_err();
            assert_eq!((line, why.to_string().as_str()), (2, expected), "{bad}");
        };

        check("0.255.0.0,1.0.2.0,1,x", "the range starts before the one before it");
        check("1.0.2.0,1.0.1.0,1,x", "the range ends before it starts");
        check("1.0.2.0,1.0.2.256,1,x", "\"1.0.2.256\" is no address");
        check("1.0.2.0,2001::,1,x", "the range starts in IPv4 and ends in IPv6");
        check("1.0.2.0,1.0.2.255,AS1,x", "\"AS1\" is no number of an autonomous system");
        check(
            "1.0.2.0,1.0.2.255,4294967296,x",
            "\"4294967296\" is no number of an autonomous system",
        );
        check(
            "1.0.2.0,1.0.2",
            "2 columns; a line has 3 (country), 4 (asn) or 10 (city), and all have as many",
        );
        let (line, why) = read(&b"1.0.0.0,1.0.0.255,China\n"[..]).unwrap_err();
        assert_eq!((line, why.to_string().as_str()), (1, "\"China\" is no country of two letters"));
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[0-9.,:\"\n]{0,80}") {
            read(&bytes[..]).ok();
            read(text.as_bytes()).ok();
        }
    }

    fn asn(layer: &Layer, ip: &str) -> Option<u32> {
        layer.asns.find(key(ip.parse().unwrap())).map(|it| it.fact)
    }

    fn place<'a>(layer: &'a Layer, ip: &str) -> Option<&'a str> {
        let row = layer.places.find(key(ip.parse().unwrap()))?;
        Some(&layer.codes[row.fact as usize])
    }
}
