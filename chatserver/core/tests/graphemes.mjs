// Tells the lengths of texts as a browser counts them: an array of texts on the standard input,
// the version of Unicode and an array of lengths on the standard output.
import { readFileSync } from "node:fs";

const segmenter = new Intl.Segmenter("und", { granularity: "grapheme" });
const length = (text) => [...segmenter.segment(text.normalize("NFC"))].length;
const texts = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify({ unicode: process.versions.unicode, lengths: texts.map(length) }));
