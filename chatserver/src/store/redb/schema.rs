//! Which schema a file has, and how an older one becomes this program's.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use kit::clock::Clock;
use proto::control::Fact;
use proto::id::AppId;
use redb::{
    Database, ReadTransaction, ReadableTable, TableDefinition, TableError, TableHandle,
    WriteTransaction,
};

use super::{definition, pack, unpack};
use crate::store::{Table, acts_key, closed_key, rooms_key};

/// The schema of this program. 2: an app's rooms and acts are counted, closed rooms are marked,
/// and acts have records.
pub(super) const SCHEMA: u32 = 2;
/// What files have in which none is written.
const FIRST: u32 = 1;

const META: TableDefinition<'_, &str, u32> = TableDefinition::new("meta");
const KEY: &str = "schema";

/// Brings the file to [`SCHEMA`], in one transaction.
pub(super) fn settle(database: &Database) -> anyhow::Result<()> {
    let transaction = database.begin_write().context("it cannot be written")?;
    let found = transaction.open_table(META)?.get(KEY)?.map(|it| it.value());
    let is_new = !transaction.list_tables()?.any(|it| it.name() == Table::Rooms.name());
    let from = found.unwrap_or(if is_new { SCHEMA } else { FIRST });
    if from > SCHEMA {
        bail!(
            "its schema is {from}, and this version of the program knows {SCHEMA} at most: run the \
             newer version, or restore a backup"
        );
    }
    // Creates the tables, which a reader cannot.
    for table in Table::ALL {
        transaction.open_table(definition(table))?;
    }
    if from < 2 {
        count_rooms(&transaction).context("its rooms cannot be counted")?;
        count_acts(&transaction).context("its acts cannot be counted")?;
    }
    transaction.open_table(META)?.insert(KEY, SCHEMA)?;
    transaction.commit().context("it cannot be written")?;
    if from < SCHEMA {
        tracing::info!(from, to = SCHEMA, "the room store has a newer schema now");
    }
    Ok(())
}

/// Writes the schema of one file into another.
pub(super) fn copy(from: &ReadTransaction, to: &WriteTransaction) -> anyhow::Result<()> {
    match from.open_table(META) {
        Ok(meta) => {
            for row in meta.iter()? {
                let (name, value) = row?;
                to.open_table(META)?.insert(name.value(), value.value())?;
            }
            Ok(())
        }
        // Of the first schema.
        Err(TableError::TableDoesNotExist(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// From 1 to 2. Rooms that are closed count as closed now: when they were is not known.
fn count_rooms(transaction: &WriteTransaction) -> anyhow::Result<()> {
    let now = Clock::system().wall();
    let mut own = transaction.open_table(definition(Table::Own))?;
    let mut rooms: BTreeMap<AppId, u32> = BTreeMap::new();
    for row in transaction.open_table(definition(Table::Rooms))?.iter()? {
        if let Some(value) = unpack(row?.1.value())
            && let Ok(Fact::Room(fact)) = Fact::decode(&value.bytes)
        {
            *rooms.entry(fact.app).or_default() += 1;
            if !fact.open {
                own.insert(closed_key(&fact.room, now).name.as_str(), &*pack(1, &[]))?;
            }
        }
    }
    for (app, count) in rooms {
        own.insert(rooms_key(app).name.as_str(), &*pack(1, &count.to_be_bytes()))?;
    }
    Ok(())
}

/// From 1 to 2.
fn count_acts(transaction: &WriteTransaction) -> anyhow::Result<()> {
    let mut acts: BTreeMap<String, u32> = BTreeMap::new();
    for row in transaction.open_table(definition(Table::Acts))?.iter()? {
        let (name, _) = row?;
        let app = name.value().split(':').nth(1).unwrap_or_default().to_owned();
        *acts.entry(app).or_default() += 1;
    }
    let mut own = transaction.open_table(definition(Table::Own))?;
    for (app, count) in acts {
        own.insert(acts_key(&app).name.as_str(), &*pack(1, &count.to_be_bytes()))?;
    }
    Ok(())
}
