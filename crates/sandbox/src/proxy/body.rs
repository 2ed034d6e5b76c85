//! Bodies of HTTP/1 messages, copied from one connection to another.
//!
//! Chunks are read and written anew, without extensions and trailers, so that both ends agree where a body ends.

use std::io::{self, BufRead, BufReader, Read, Write};

use super::head::BodyFraming;

/// The maximum length of the line before a chunk.
const MAX_CHUNK_LINE_LENGTH: usize = 4096;

/// The maximum length of all trailers.
const MAX_TRAILER_LENGTH: usize = 64 * 1024;

/// The maximum number of digits of a chunk's length, so that it fits into 64 bits.
const MAX_CHUNK_DIGITS: usize = 15;

/// Copies a body. Bytes that have arrived are passed on before the next read waits.
pub(crate) fn copy_body(
    reader: &mut BufReader<impl Read>,
    writer: &mut impl Write,
    framing: BodyFraming,
) -> io::Result<()> {
    let mut writer = io::BufWriter::new(writer);
    match framing {
        BodyFraming::Length(length) => copy_length(reader, &mut writer, length)?,
        BodyFraming::Chunked => copy_chunks(reader, &mut writer)?,
        BodyFraming::UntilEnd => while copy_some(reader, &mut writer, u64::MAX)? > 0 {},
    }
    writer.flush()
}

fn copy_length(reader: &mut BufReader<impl Read>, writer: &mut impl Write, mut length: u64) -> io::Result<()> {
    while length > 0 {
        match copy_some(reader, writer, length)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            copied => length -= copied,
        }
    }
    Ok(())
}

/// Copies the bytes that are there, or those that arrive next. Returns zero at the end of the stream.
fn copy_some(reader: &mut BufReader<impl Read>, writer: &mut impl Write, max: u64) -> io::Result<u64> {
    let available = fill_buffer(reader, writer)?;
    let length = available.len().min(usize::try_from(max).unwrap_or(usize::MAX));
    writer.write_all(&available[..length])?;
    reader.consume(length);
    Ok(length as u64)
}

fn fill_buffer<'a>(reader: &'a mut BufReader<impl Read>, writer: &mut impl Write) -> io::Result<&'a [u8]> {
    if reader.buffer().is_empty() {
        writer.flush()?;
        while let Err(error) = reader.fill_buf() {
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
    Ok(reader.buffer())
}

fn copy_chunks(reader: &mut BufReader<impl Read>, writer: &mut impl Write) -> io::Result<()> {
    loop {
        let line = read_line(reader, writer, MAX_CHUNK_LINE_LENGTH)?;
        let length = parse_chunk_length(&line).ok_or(io::ErrorKind::InvalidData)?;
        if length == 0 {
            break;
        }
        write!(writer, "{length:x}\r\n")?;
        copy_length(reader, writer, length)?;
        if !read_line(reader, writer, 0)?.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        writer.write_all(b"\r\n")?;
    }
    let mut trailers = 0;
    loop {
        let line = read_line(reader, writer, MAX_TRAILER_LENGTH - trailers)?;
        if line.is_empty() {
            return writer.write_all(b"0\r\n\r\n");
        }
        trailers += line.len();
    }
}

/// Returns the length of a chunk, whose line may have extensions.
fn parse_chunk_length(line: &[u8]) -> Option<u64> {
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let (digits, extension) = line.split_at(end);
    let is_extension = extension.is_empty() || extension.trim_ascii_start().starts_with(b";");
    let digits = std::str::from_utf8(digits).ok()?;
    let is_length = is_extension && (1..=MAX_CHUNK_DIGITS).contains(&digits.len());
    u64::from_str_radix(digits, 16).ok().filter(|_| is_length)
}

/// Reads a line that ends with `\r\n`, and returns it without its end.
fn read_line(reader: &mut BufReader<impl Read>, writer: &mut impl Write, max_length: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let byte = *fill_buffer(reader, writer)?.first().ok_or(io::ErrorKind::UnexpectedEof)?;
        reader.consume(1);
        match byte {
            b'\n' if line.last() == Some(&b'\r') => {
                line.pop();
                return Ok(line);
            }
            b'\n' => return Err(io::ErrorKind::InvalidData.into()),
            // A carriage return stands at the end of a line only.
            _ if line.last() == Some(&b'\r') => return Err(io::ErrorKind::InvalidData.into()),
            _ if line.len() > max_length => return Err(io::ErrorKind::InvalidData.into()),
            byte => line.push(byte),
        }
    }
}
