//! Structure as tests: see tests/.
