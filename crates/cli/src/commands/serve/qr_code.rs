//! Links as QR codes in the terminal.

use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use windlass_app::{Failure, FailureCode};

use crate::output::{CommandResult, Output};

/// Prints a link as a QR code, with the link below for people without a camera. A code is readable on dark and on light terminals
/// because its margin is part of the drawing.
pub fn print_qr_code(link: &str, out: &mut Output) -> CommandResult {
    let code = QrCode::new(link)
        .map_err(|error| Failure::new(FailureCode::System, "cannot draw the link as a QR code").with_cause(error))?;
    let drawn = code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    for line in drawn.lines() {
        out.print_line(line)?;
    }
    out.print_line(link)
}
