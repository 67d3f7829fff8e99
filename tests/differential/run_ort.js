// run_ort.js CASES [LEVEL] - runs every case below a folder in the real ONNX Runtime, at its optimisation level LEVEL
// ('disabled' by default), and writes what it gives beside the inputs: CASE/ort.json and CASE/ort_N.bin.
const fs = require('fs');
const path = require('path');
const ort = require('onnxruntime-node');

const arrays = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, bool: Uint8Array,
  int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array,
};

function readInput(folder, input) {
  const bytes = fs.readFileSync(path.join(folder, input.file));
  const copy = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  return new ort.Tensor(input.type, new arrays[input.type](copy), input.dims);
}

async function runCase(folder) {
  const session = await ort.InferenceSession.create(path.join(folder, 'model.onnx'), {
    graphOptimizationLevel: process.argv[3] || 'disabled', intraOpNumThreads: 1, logSeverityLevel: 4,
  });
  const feeds = {};
  for (const input of JSON.parse(fs.readFileSync(path.join(folder, 'inputs.json'))))
    feeds[input.name] = readInput(folder, input);
  const results = await session.run(feeds);
  const outputs = session.outputNames.map((name, i) => {
    const t = results[name];
    fs.writeFileSync(path.join(folder, `ort_${i}.bin`),
                     Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength));
    return {name, type: t.type, dims: t.dims.map(Number)};
  });
  await session.release();
  return {outputs};
}

(async () => {
  const root = process.argv[2];
  for (const name of fs.readdirSync(root).sort()) {
    const folder = path.join(root, name);
    if (!fs.existsSync(path.join(folder, 'model.onnx'))) continue;
    let verdict;
    try {
      verdict = await runCase(folder);
    } catch (e) {
      verdict = {error: String(e.message)};
    }
    fs.writeFileSync(path.join(folder, 'ort.json'), JSON.stringify(verdict));
  }
})();
