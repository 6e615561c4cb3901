//! What every [`LoadTable`] adapter does; its tests call [`check`] with an empty one.

use bytes::Bytes;

use super::{LoadTable, REGIONS_MAX, TableError, VALUE_BYTES_MAX, Value};

/// Panics where `table` does not keep the contract. It must be empty.
///
/// # Panics
/// That is how it tells.
pub async fn check(table: &dyn LoadTable) {
    values_are_found_by_name_and_replaced(table).await;
    a_value_too_large_is_refused_alone(table).await;
    the_number_of_regions_is_bounded(table).await;
}

async fn values_are_found_by_name_and_replaced(table: &dyn LoadTable) {
    assert_eq!(table.get().await, Ok(vec![]));

    assert_eq!(table.put(vec![value("south", 1), value("north", 2)]).await, Ok(()));
    assert_eq!(table.get().await, Ok(vec![value("north", 2), value("south", 1)]));

    assert_eq!(table.put(vec![value("south", 3)]).await, Ok(()));
    assert_eq!(table.put(vec![]).await, Ok(()));
    assert_eq!(table.get().await, Ok(vec![value("north", 2), value("south", 3)]));
}

async fn a_value_too_large_is_refused_alone(table: &dyn LoadTable) {
    let bytes = VALUE_BYTES_MAX + 1;
    let large = Value { region: "north".into(), bytes: vec![0; bytes].into() };

    let put = table.put(vec![large, value("south", 4)]).await;

    assert_eq!(put, Err(TableError::TooLarge { bytes }));
    assert_eq!(table.get().await, Ok(vec![value("north", 2), value("south", 4)]));
}

async fn the_number_of_regions_is_bounded(table: &dyn LoadTable) {
    let fill = (2..REGIONS_MAX).map(|it| value(&format!("r{it}"), 0)).collect();
    assert_eq!(table.put(fill).await, Ok(()));

    let put = table.put(vec![value("one-more", 0), value("south", 5)]).await;

    assert_eq!(put, Err(TableError::Full));
    let values = table.get().await.unwrap_or_default();
    assert_eq!(values.len(), REGIONS_MAX);
    assert!(values.contains(&value("south", 5)));
}

fn value(region: &str, byte: u8) -> Value {
    Value { region: region.into(), bytes: Bytes::copy_from_slice(&[byte]) }
}
