//! The site's images: drawn waves as SVG, and a small PNG written byte by byte.
//!
//! No image crate: an icon needs one uncompressed block of deflate and two checksums, and a drawn
//! wave is text. (PNG: ISO/IEC 15948; zlib and deflate: RFC 1950, RFC 1951.)

use std::fmt::Write as _;

const WIDTH: u32 = 480;
const HEIGHT: u32 = 270;
/// Pixels along each side of the icon.
const ICON_SIDE: u8 = 64;

/// Picture `number` of a calm sea under a low sun, each with its own hue.
pub(super) fn waves(number: u64) -> String {
    let hue = number * 47 % 360;
    let sun = 60 + number * 60;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>Waves, picture {number}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"hsl({hue} 60% 88%)\"/>\n\
         <circle cx=\"{sun}\" cy=\"80\" r=\"34\" fill=\"hsl({hue} 90% 97%)\"/>\n"
    );
    for row in 0..5_u64 {
        let top = 110 + row * 30;
        let lightness = 70 - row * 11;
        // Two half-waves of the period, the second mirrored by the path command T.
        let period = 120 + (number * 13 + row * 29) % 60;
        let half = period / 2;
        let height = 14 - row;
        let start = row * 37 % period;
        let _ = write!(svg, "<path d=\"M-{start} {top}q{} -{height} {half} 0", half / 2);
        for _ in 0..(u64::from(WIDTH) * 2 / half + 4) {
            let _ = write!(svg, "t{half} 0");
        }
        let _ = writeln!(svg, "V{HEIGHT}H-{start}z\" fill=\"hsl({hue} 45% {lightness}%)\"/>");
    }
    svg.push_str("</svg>\n");
    svg
}

/// A disc with a soft gradient, 64 × 64 pixels, RGBA.
pub(super) fn icon() -> Vec<u8> {
    let mut pixels = Vec::new();
    for y in 0..ICON_SIDE {
        // Each row begins with its filter type: 0, none.
        pixels.push(0);
        for x in 0..ICON_SIDE {
            let (dx, dy) = (i32::from(x) * 2 - 63, i32::from(y) * 2 - 63);
            let alpha = if dx * dx + dy * dy <= 62 * 62 { 255 } else { 0 };
            pixels.extend([112 + x, 66 + y, 20 + y / 2, alpha]);
        }
    }
    let side = u32::from(ICON_SIDE).to_be_bytes();
    // Bit depth 8, colour type 6 (RGBA), the only compression and filter methods, no interlace.
    let header = [&side[..], &side[..], &[8, 6, 0, 0, 0]].concat();
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    write_part(&mut png, b"IHDR", &header);
    write_part(&mut png, b"IDAT", &stored(&pixels));
    write_part(&mut png, b"IEND", &[]);
    png
}

fn write_part(png: &mut Vec<u8>, kind: &[u8; 4], bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("an icon's part is small");
    png.extend(length.to_be_bytes());
    let checked = [&kind[..], bytes].concat();
    png.extend_from_slice(&checked);
    png.extend(crc32(&checked).to_be_bytes());
}

/// A zlib stream with one stored block.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("an icon fits one block");
    let mut stream = vec![0x78, 0x01, 0x01];
    stream.extend(length.to_le_bytes());
    stream.extend((!length).to_le_bytes());
    stream.extend_from_slice(bytes);
    stream.extend(adler32(bytes).to_be_bytes());
    stream
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

fn adler32(bytes: &[u8]) -> u32 {
    let step = |(a, b), byte: &u8| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    };
    let (a, b) = bytes.iter().fold((1, 0), step);
    b << 16 | a
}

#[cfg(test)]
mod tests {
    use super::{adler32, crc32};

    #[test]
    fn checksums_have_their_published_check_values() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
    }
}
