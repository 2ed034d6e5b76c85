//! Tests of the command line as a whole.

mod reference;
