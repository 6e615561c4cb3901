//! Columns of varints: how numbers that are mostly small stand in a column of bytes.

use flatbuffers::Vector;

use super::refused;
use crate::decode::DecodeError;

/// Appends a number as LEB128: seven bits a byte, the lowest first, bit 7 set in all but the last.
#[expect(clippy::cast_possible_truncation, reason = "seven bits are left")]
pub(super) fn push(column: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        column.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    column.push(number as u8);
}

/// Numbers to differences and back, each to the one before, the first one to 0.
///
/// A difference stands as zigzag: 0, -1, 1, -2 as 0, 1, 2, 3.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Differences {
    before: u64,
}

impl Differences {
    pub(super) fn write(&mut self, number: u64) -> u64 {
        let difference = number.wrapping_sub(self.before).cast_signed();
        self.before = number;
        ((difference << 1) ^ (difference >> 63)).cast_unsigned()
    }

    pub(super) fn read(&mut self, zigzag: u64) -> u64 {
        let difference = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
        self.before = self.before.wrapping_add(difference);
        self.before
    }
}

/// A column of varints that is read number by number.
pub(super) struct Varints<'a> {
    rest: &'a [u8],
    field: &'static str,
}

impl<'a> Varints<'a> {
    /// A column that is absent holds no numbers.
    pub(super) fn of(column: Option<Vector<'a, u8>>, field: &'static str) -> Self {
        Self { rest: column.map_or(&[], |it| it.bytes()), field }
    }

    pub(super) fn next(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let Some((&byte, rest)) = self.rest.split_first() else { break };
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            number |= bits << shift;
            if (number >> shift) & 0x7f != bits {
                break;
            }
            if byte < 0x80 {
                return Ok(number);
            }
        }
        refused(self.field)
    }

    pub(super) fn next_u32(&mut self) -> Result<u32, DecodeError> {
        u32::try_from(self.next()?).or_else(|_| refused(self.field))
    }

    /// Nothing may be left over.
    pub(super) fn close(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { refused(self.field) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(column: &[u8]) -> Result<Vec<u64>, DecodeError> {
        let mut varints = Varints { rest: column, field: "numbers" };
        let mut numbers = Vec::new();
        while !varints.rest.is_empty() {
            numbers.push(varints.next()?);
        }
        Ok(numbers)
    }

    #[test]
    fn small_numbers_take_a_byte_and_the_largest_ten() {
        let bytes = |number| {
            let mut column = Vec::new();
            push(&mut column, number);
            column
        };

        assert_eq!(bytes(0), [0]);
        assert_eq!(bytes(127), [127]);
        assert_eq!(bytes(300), [0xac, 2]);
        assert_eq!(bytes(u64::MAX), [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
    }

    #[test]
    fn a_number_that_does_not_end_or_does_not_fit_is_refused() {
        let refused = Err(DecodeError::Value { field: "numbers" });

        assert_eq!(read(&[0x80]), refused);
        assert_eq!(read(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 2]), refused);
        assert_eq!(read(&[128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0]), refused);
    }

    proptest! {
        #[test]
        fn numbers_come_back(numbers: Vec<u64>) {
            let mut column = Vec::new();
            numbers.iter().for_each(|it| push(&mut column, *it));

            prop_assert_eq!(read(&column), Ok(numbers));
        }

        #[test]
        fn differences_come_back(numbers: Vec<u64>) {
            let (mut out, mut back) = (Differences::default(), Differences::default());

            for number in numbers {
                prop_assert_eq!(back.read(out.write(number)), number);
            }
        }
    }
}
