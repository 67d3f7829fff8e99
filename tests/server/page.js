// page.js URL PICTURE FOLDER - the server's page in headless Chromium, at a desk and on a phone: models
// and charts appear, a picture is tried, errors are shown. Screenshots go to FOLDER.
const assert = require('assert');
const path = require('path');
const {chromium} = require('playwright-core');

const [, , url, picture, folder] = process.argv;
const PATIENCE = 120000; // milliseconds: a busy machine is slow, not wrong

async function visit(browser, name, viewport) {
  const page = await browser.newPage({viewport, isMobile: false});
  page.setDefaultTimeout(PATIENCE);
  const problems = [];
  page.on('pageerror', (e) => problems.push(String(e)));
  page.on('console', (m) => m.type() === 'error' && !m.text().includes('favicon') && problems.push(m.text()));
  await page.goto(url);
  await page.waitForSelector('#models .card h2');
  assert.strictEqual(await page.textContent('#models .card h2'), 'digits');
  await page.waitForFunction(() => document.querySelectorAll('#models .card polyline').length === 4);
  await page.click('#models .card button');
  await page.waitForSelector('#details table');
  assert((await page.textContent('#details')).includes('[-1, 1, 8, 8]'));
  await page.setInputFiles('#details input[type=file]', picture);
  await page.waitForFunction(() => {
    const canvas = document.querySelector('#details canvas');
    return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((v) => v > 0);
  });
  await page.click('#details button.main');
  await page.waitForSelector('#result .bar');
  const first = await page.textContent('#result .bar span');
  await page.waitForTimeout(2500);
  await page.screenshot({path: path.join(folder, `page-${name}.png`), fullPage: true});
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert(width <= viewport.width, `${name}: the page is ${width} wide in ${viewport.width}`);
  assert.deepStrictEqual(problems, []);
  await page.close();
  return first;
}

(async () => {
  const browser = await chromium.launch({executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
                                         args: ['--no-sandbox', '--disable-gpu'], timeout: PATIENCE});
  const desk = await visit(browser, 'desk', {width: 1280, height: 800});
  const phone = await visit(browser, 'phone', {width: 380, height: 780});
  await browser.close();
  assert.strictEqual(desk, phone);
  console.log('first ' + desk);
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
