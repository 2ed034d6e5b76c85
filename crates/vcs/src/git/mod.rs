//! Git, by its own command line.
