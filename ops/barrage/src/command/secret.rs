//! Secrets that commands are given: never as an argument, which other users of a machine can see.

use std::path::Path;

use anyhow::Context;
use auth_core::secret::Secret;

/// The text of a file for its owner alone, without the white space around it; without a file, that
/// of a variable of the environment. `None` if there is neither.
pub(crate) fn given(file: Option<&Path>, variable: &str) -> anyhow::Result<Option<Secret>> {
    let Some(path) = file else {
        let text = std::env::var(variable).ok().filter(|it| !it.is_empty());
        return Ok(text.map(Secret::new));
    };
    let name = || format!("cannot use {}", path.display());
    let bytes = kit::private::read(path).with_context(name)?.context("there is no such file");
    let text = String::from_utf8(bytes.with_context(name)?).with_context(name)?;
    Ok(Some(Secret::new(text.trim().to_owned())))
}
