// A recorded battle: its bytes, checked and unpacked into plain arrays. The format is in docs/echelon.md.

export const MOST_BYTES = 1 << 26; // of a file, and of a block unpacked: more is no battle
const VERSION = 1;
const PREFIX = 24; // bytes: magic, version, bytes of the header, its checksum, bytes of all blocks
const MAGIC = "ECHELON\0";
const ALIGN = 8;
const MOST_MECHS = 40;
const TYPES = {
  i1: Int8Array,
  u1: Uint8Array,
  u2: Uint16Array,
  i4: Int32Array,
  u4: Uint32Array,
  f4: Float32Array,
  f8: Float64Array,
  u8: Uint32Array, // 64 bits as two numbers, the lower one first
};

/** A file that cannot be shown; the message is one line that says why. */
export class BadRecording extends Error {}

/** The parts of a recording: header, the map at the start, and for each group of fields its arrays over all frames. */
export async function unpackRecording(buffer, name) {
  const refuse = (why) => {
    throw new BadRecording(`${name} ${why}`);
  };
  const damaged = (what) => refuse(`is damaged (${what} does not match its checksum): copy or record it again`);
  if (buffer.byteLength > MOST_BYTES) {
    refuse(`has ${buffer.byteLength.toLocaleString("en-US")} bytes, recordings have at most 67,108,864: not a battle`);
  }
  const bytes = new Uint8Array(buffer);
  const magic = String.fromCharCode(...bytes.subarray(0, MAGIC.length));
  if (!bytes.length || !MAGIC.startsWith(magic)) refuse("is no Echelon recording");
  if (bytes.length < PREFIX) refuse(`is cut off after ${bytes.length} bytes: copy or record it again`);
  const prefix = new DataView(buffer);
  const [version, headerBytes, headerCheck, bodyBytes] = [8, 12, 16, 20].map((at) => prefix.getUint32(at, true));
  if (version !== VERSION) refuse(`is a recording of version ${version}, this page reads version ${VERSION}`);
  const expected = PREFIX + headerBytes + bodyBytes;
  if (bytes.length !== expected) {
    refuse(`is ${bytes.length < expected ? "cut off" : "too long"}: ${bytes.length} bytes, not ${expected}`);
  }
  const text = bytes.subarray(PREFIX, PREFIX + headerBytes);
  if (checksum(text) !== headerCheck) damaged("its header");
  const header = JSON.parse(new TextDecoder().decode(text));
  if (!isPlausible(header, bodyBytes)) damaged("its header");

  let at = PREFIX + headerBytes;
  const raw = [];
  for (const [number, block] of header.blocks.entries()) {
    const packed = bytes.subarray(at, at + block.bytes);
    at += block.bytes;
    if (checksum(packed) !== block.crc) damaged(`block ${number}`);
    raw.push(await inflate(packed, block.unpacked).catch(() => damaged(`block ${number}`)));
  }
  const [x, y, z] = header.size;
  if (raw[0].length !== x * y * z) damaged("block 0");
  try {
    return { header, start: raw[0], ...readFrames(header, raw) };
  } catch (error) {
    if (error instanceof RangeError) return damaged("a block of frames");
    throw error;
  }
}

/** Whether the sizes in a header make sense together: nothing is reserved or unpacked before they do. */
function isPlausible(header, bodyBytes) {
  const { size, mechs, blocks, fields, frames } = header;
  if (!Array.isArray(size) || !Array.isArray(mechs) || !Array.isArray(blocks) || typeof fields !== "object")
    return false;
  const packed = blocks.reduce((sum, block) => sum + block.bytes, 0);
  const told = blocks.slice(1).reduce((sum, block) => sum + block.frames, 0);
  const unpacked = blocks.reduce((sum, block) => sum + block.unpacked, 0);
  return (
    packed === bodyBytes && told === frames && frames > 0 && unpacked <= 4 * MOST_BYTES && mechs.length <= MOST_MECHS
  );
}

function readFrames(header, raw) {
  const mechs = header.mechs.length;
  const channels = header.channels ?? [];
  const parts = new Map(); // group.field -> pieces, one a block
  const put = (key, piece) => parts.set(key, [...(parts.get(key) ?? []), piece]);
  header.blocks.slice(1).forEach((block, i) => {
    const take = reader(raw[i + 1]);
    const rows = { now: block.frames, mechs: block.frames * mechs };
    for (const list of header.lists) {
      const counts = take("u4", block.frames);
      put(`${list}.count`, counts);
      rows[list] = counts.reduce((sum, count) => sum + count, 0);
    }
    for (const [group, fields] of Object.entries(header.fields)) {
      for (const [name, type, shape] of fields) put(`${group}.${name}`, take(type, rows[group] * (shape?.[0] ?? 1)));
    }
    for (const { name, numbers } of channels) put(`channels.${name}`, take("f4", rows.mechs * numbers.length));
  });
  const groups = { channels: {} };
  for (const [key, pieces] of parts) {
    const [group, name] = key.split(".");
    groups[group] ??= {};
    groups[group][name] = joined(pieces);
  }
  return { groups };
}

/** Takes one array after the other from a block. */
function reader(raw) {
  let at = 0;
  return (type, count) => {
    const kind = type.replace(/^[<|]/, "");
    const length = kind === "u8" ? 2 * count : count;
    const found = new TYPES[kind](raw.buffer, at, length);
    at += found.byteLength + ((ALIGN - (found.byteLength % ALIGN)) % ALIGN);
    return found;
  };
}

function joined(pieces) {
  const whole = new pieces[0].constructor(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** Unpack a block to exactly the size announced, and never further. */
async function inflate(packed, size) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const unpacked = new Uint8Array(size);
  let at = 0;
  for (const source = stream.getReader(); ;) {
    const { done, value } = await source.read();
    if (done) break;
    if (at + value.length > size) {
      source.cancel().catch(() => {});
      throw new RangeError("more than announced");
    }
    unpacked.set(value, at);
    at += value.length;
  }
  if (at !== size) throw new RangeError("less than announced");
  return unpacked;
}

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** CRC-32, as zlib counts it. */
export function checksum(bytes) {
  let value = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) value = CRC[(value ^ bytes[i]) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}
