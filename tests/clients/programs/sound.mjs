// sound.mjs - sound and pictures that the programs work on, made by arithmetic so that no file is needed.

// A voice: pulses at a pitch through three resonances, in two bursts with silence around them.
export function voice(seconds, rate) {
  const n = Math.floor(seconds * rate), x = new Float32Array(n);
  const formants = [[700, 90], [1220, 110], [2600, 170]].map(([f, width]) => {
    const r = Math.exp(-Math.PI * width / rate);
    return { a: 2 * r * Math.cos(2 * Math.PI * f / rate), b: -r * r, y1: 0, y2: 0 };
  });
  let phase = 0;
  for (let i = 0; i < n; i++) {
    const t = i / rate, burst = (t > 0.4 && t < 1.4) || (t > 2.2 && t < 3.1);
    phase += (120 + 25 * Math.sin(2 * Math.PI * 2.5 * t)) / rate;
    let v = phase >= 1 ? 1 : 0;
    phase -= Math.floor(phase);
    if (!burst) v = 0;
    for (const f of formants) {
      const y = v + f.a * f.y1 + f.b * f.y2;
      f.y2 = f.y1;
      v = f.y1 = y;
    }
    x[i] = v;
  }
  const most = x.reduce((m, v) => Math.max(m, Math.abs(v)), 1e-9);
  return x.map((v, i) => 0.6 * v / most * (0.6 + 0.4 * Math.sin(2 * Math.PI * 4 * i / rate)) + 0.001 * Math.sin(i * i));
}

export function wav(samples, rate) {
  const bytes = Buffer.alloc(44 + 2 * samples.length);
  bytes.write('RIFF', 0);
  bytes.writeUInt32LE(bytes.length - 8, 4);
  bytes.write('WAVEfmt ', 8);
  [[16, 4], [1, 2], [1, 2], [rate, 4], [2 * rate, 4], [2, 2], [16, 2]].reduce((at, [v, size]) => bytes.writeUIntLE(v, at, size), 16);
  bytes.write('data', 36);
  bytes.writeUInt32LE(2 * samples.length, 40);
  samples.forEach((v, i) => bytes.writeInt16LE(Math.max(-32768, Math.min(32767, Math.round(v * 32767))), 44 + 2 * i));
  return bytes;
}

// Digits and a few letters of 5 x 7 dots.
const font = {
  0: '01110 10001 10011 10101 11001 10001 01110', 1: '00100 01100 00100 00100 00100 00100 01110',
  2: '01110 10001 00001 00110 01000 10000 11111', 3: '11111 00010 00100 00010 00001 10001 01110',
  4: '00010 00110 01010 10010 11111 00010 00010', 5: '11111 10000 11110 00001 00001 10001 01110',
  6: '00110 01000 10000 11110 10001 10001 01110', 7: '11111 00001 00010 00100 01000 01000 01000',
  8: '01110 10001 10001 01110 10001 10001 01110', 9: '01110 10001 10001 01111 00001 00010 01100',
  H: '10001 10001 10001 11111 10001 10001 10001', E: '11111 10000 10000 11110 10000 10000 11111',
  L: '10000 10000 10000 10000 10000 10000 11111', O: '01110 10001 10001 10001 10001 10001 01110',
};

// An RGB picture with lines of text, `dot` pixels to a dot of the font.
export function picture(lines, width, height, dot) {
  const data = Buffer.alloc(width * height * 3, 245);
  lines.forEach((text, row) => [...text].forEach((c, column) => {
    const rows = font[c] ? font[c].split(' ') : [];
    rows.forEach((bits, y) => [...bits].forEach((bit, x) => {
      if (bit !== '1') return;
      for (let v = 0; v < dot; v++) for (let u = 0; u < dot; u++) {
        const px = (2 + column * 6 + x) * dot + 20 + u, py = (row * 14 + y) * dot + 30 + v;
        if (px < width && py < height) data.fill(25, 3 * (py * width + px), 3 * (py * width + px) + 3);
      }
    }));
  }));
  return { data, width, height };
}
