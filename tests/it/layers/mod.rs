//! Keeps the layers apart. The compiler does most of it: a crate can use only what its manifest names. These tests keep
//! heavy packages out of functions that do not need them, keep the files of a crate free of cycles, and look for the
//! paths that documents name.

mod crates;
mod files;
mod paths;
mod weight;
