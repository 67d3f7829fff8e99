// node_client.js MODULES MODELS [workers] - what a Node.js program does with onnxruntime-node, whose library
// has been replaced by Sinter's. Prints "ok" at the end; fails with a message otherwise.
const path = require('path');
const assert = require('assert');
const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');

const [modules, models, workers] = isMainThread ? process.argv.slice(2) : workerData;
const ort = require(path.join(modules, 'onnxruntime-node'));
const model = (name) => path.join(models, name + '.onnx');
const floats = (dims) => {
  const n = dims.reduce((a, b) => a * b, 1);
  return new ort.Tensor('float32', Float32Array.from({ length: n }, (_, i) => ((i * 37 + 11) % 17) / 8 - 1), dims);
};

async function mlp(session, rows) {
  const { y } = await session.run({ x: floats([rows, 8]) });
  assert.deepStrictEqual(y.dims, [rows, 4]);
  assert.strictEqual(y.type, 'float32');
  for (const [i, v] of [4.9483, -4.9042, 1.0569, 5.5558].entries()) assert(Math.abs(y.data[i] - v) < 1e-3, `y[${i}] is ${y.data[i]}`);
  return y;
}

async function types() {
  const session = await ort.InferenceSession.create(model('types'));
  assert.deepStrictEqual([...session.inputNames], ['i', 'b', 's']);
  for (const n of [2, 3]) {
    const result = await session.run({
      i: new ort.Tensor('int64', BigInt64Array.from({ length: n }, (_, k) => 5000000000n + BigInt(k)), [n]),
      b: new ort.Tensor('bool', Uint8Array.from({ length: n }, (_, k) => k & 1), [n]),
      s: new ort.Tensor('string', Array.from({ length: n }, (_, k) => 'text ' + 'é'.repeat(k)), [n]),
    });
    assert.strictEqual(result.i2.data[1], 10000000002n);
    assert.deepStrictEqual(Array.from(result.nb.data).slice(0, 2), [1, 0]);
    assert.deepStrictEqual(Array.from(result.s2.data), Array.from({ length: n }, (_, k) => 'text ' + 'é'.repeat(k)));
  }
}

async function wrong(session) {
  const fails = async (feeds, words) => {
    try {
      await session.run(feeds);
    } catch (e) {
      for (const word of words) assert(e.message.includes(word), `"${e.message}" does not say ${word}`);
      return;
    }
    assert.fail('wrong inputs were accepted');
  };
  await fails({ x: floats([8, 1]) }, ["'x'", '8,1', 'N,8']);
  await fails({ x: new ort.Tensor('int64', new BigInt64Array(8), [1, 8]) }, ["'x'", 'int64', 'float32']);
  await fails({}, ['x']);
  await assert.rejects(ort.InferenceSession.create('/no/such/model.onnx'), /no\/such\/model/);
  await assert.rejects(ort.InferenceSession.create(Buffer.from('this is no model')), Error);
}

async function main() {
  const session = await ort.InferenceSession.create(model('mlp'));
  await mlp(session, 1);
  await mlp(session, 3); // another shape
  const options = { graphOptimizationLevel: 'all', intraOpNumThreads: 1, enableCpuMemArena: false, enableMemPattern: false, executionMode: 'sequential', logId: 'node', logSeverityLevel: 3, extra: { session: { nothing: '1' } } };
  const more = await Promise.all([1, 2, 3].map(() => ort.InferenceSession.create(require('fs').readFileSync(model('mlp')), options)));
  await Promise.all([...more, session].flatMap((s) => Array.from({ length: 20 }, (_, i) => mlp(s, 1 + (i % 4)))));
  await types();
  await wrong(session);
  if (workers) await Promise.all([1, 2, 3].map(() => new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: [modules, models] });
    worker.on('message', resolve).on('error', reject);
  })));
  for (const s of more) await s.release();
  await session.release();
  console.log('ok');
}

if (isMainThread) {
  main().catch((e) => { console.error(e); process.exit(1); });
} else {
  (async () => {
    const session = await ort.InferenceSession.create(model('mlp'));
    for (let i = 0; i < 20; i++) await mlp(session, 1 + (i % 3));
    parentPort.postMessage('done');
  })();
}
