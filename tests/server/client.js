// client.js PROTO PORT - a session with the server through @grpc/grpc-js: metadata, inference, errors,
// a stream. Prints "ok" at the end; any difference throws.
const assert = require('assert');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [, , proto, port] = process.argv;
const loaded = grpc.loadPackageDefinition(loader.loadSync(proto, {longs: Number, keepCase: true}));
const client = new loaded.inference.GRPCInferenceService(`127.0.0.1:${port}`,
                                                         grpc.credentials.createInsecure());

const call = (method, message) => new Promise((resolve, reject) =>
  client[method](message, (error, answer) => (error ? reject(error) : resolve(answer))));

const request = (rows, id) => ({
  model_name: 'digits', id,
  inputs: [{name: 'image', datatype: 'FP32', shape: [rows, 1, 8, 8]}],
  raw_input_contents: [Buffer.from(new Float32Array(rows * 64).fill(0.5).buffer)],
});

function stream(requests) {
  return new Promise((resolve, reject) => {
    const answers = [], duplex = client.ModelStreamInfer();
    duplex.on('data', (answer) => answers.push(answer));
    duplex.on('error', reject);
    duplex.on('end', () => resolve(answers));
    requests.forEach((r) => duplex.write(r));
    duplex.end();
  });
}

(async () => {
  const model = await call('ModelMetadata', {name: 'digits'});
  assert.deepStrictEqual(model.inputs[0].shape, [-1, 1, 8, 8]);
  const answer = await call('ModelInfer', request(2, 'a'));
  assert.strictEqual(answer.id, 'a');
  const raw = answer.raw_output_contents[0];
  const y = new Float32Array(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.length));
  assert.strictEqual(y.length, 20);
  assert(Math.abs(y.slice(0, 10).reduce((a, b) => a + b) - 1) < 1e-4);
  await assert.rejects(call('ModelInfer', {model_name: 'nothing'}),
                       (e) => e.code === grpc.status.NOT_FOUND);
  await assert.rejects(call('ModelInfer', {...request(1, 'b'), raw_input_contents: []}),
                       (e) => e.code === grpc.status.INVALID_ARGUMENT && e.details.includes('image'));
  const answers = await stream([request(1, '0'), request(3, '1'), request(2, '2')]);
  assert.deepStrictEqual(answers.map((a) => a.infer_response.id), ['0', '1', '2']);
  client.close();
  console.log('ok');
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
