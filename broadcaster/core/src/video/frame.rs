//! The one picture that is ever sent: 16 × 16 grey pixels in constrained baseline H.264 (ITU-T H.264,
//! clause 7.3), written down bit by bit.
//!
//! Each frame stands for itself (IDR), so a player can begin anywhere, and holds one macroblock,
//! predicted from nothing and without a residual, so any decoder shows the middle of its range.

/// Sequence parameter set: profile 66 with constraints 0 and 1, level 1.0; picture order follows
/// decoding (type 2), one reference frame, one macroblock wide and high, no cropping, no VUI.
pub const SPS: [u8; 6] = [0x67, 0x42, 0xC0, 0x0A, 0xDA, 0x79];

/// Picture parameter set: CAVLC, one slice group, deblocking told by the slice.
pub const PPS: [u8; 4] = [0x68, 0xCE, 0x3C, 0x80];

/// The picture's only slice. Two that follow each other differ in `idr_pic_id`, as clause 7.4.3
/// wants; the rest of the bits are the same: I slice, deblocking off, macroblock type
/// `I_16x16_2_0_0`, no coefficients.
const SLICES: [[u8; 5]; 2] = [[0x65, 0x88, 0x84, 0xA2, 0x78], [0x65, 0x88, 0x82, 0x28, 0x9E]];

/// The slice of the frame with this number.
#[must_use]
pub const fn slice(number: u64) -> &'static [u8; 5] {
    if number.is_multiple_of(2) { &SLICES[0] } else { &SLICES[1] }
}
