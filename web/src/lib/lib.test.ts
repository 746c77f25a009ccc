import { expect, test } from 'vitest';
import { decode, table } from './binary';
import * as branches from './branches';
import { catalogue, compose } from './catalogue';
import { byRow, css, scale, shareStep, signedStep } from './colour';
import { bring, foldTable, foldVector } from './fold';
import { bytes, count, number, percent, short, wholePercent } from './format';
import { spell, stacked, visible } from './token';
import { read, write, type Place } from './url';

const USUAL: Place = { page: 'predict', model: 'builtin', text: 'usual', more: [], position: null, layer: 0, head: 0, step: '', settings: {} };

test('an address gives back the state it was made from', () => {
  const place: Place = { page: 'attention', model: '/a b/&c', text: 'Two\nlines #?&=% 你好 «»', more: [3, 50256], position: 0, layer: 11, head: 2, step: 'entry', settings: { stage: 'masked', 'tree': '1(2,3)' } };
  expect(read(write(place), USUAL)).toMatchObject(place);
});

test('an address that says nothing, or nonsense, is the usual state', () => {
  for (const hash of ['', '#', '#/']) expect(read(hash, USUAL)).toMatchObject(USUAL);
  expect(read('#/layers?layer=x&more=1.b&position=-3', USUAL)).toMatchObject({ page: 'layers', layer: 0, more: [], position: null });
  expect(read('#/predict?text=', USUAL).text).toBe('');
});

test('a link that holds a step by its number opens where it did; a new one holds its name', () => {
  const steps = 'whole token embedding position entry attention_norm made split scores mask softmax mix merge projection attention_residual mlp_norm widen activation narrow mlp_residual final_norm logits choice'.split(' ');
  steps.forEach((name, number) => {
    const old = read(`#/walk?text=x&layer=2&step=${number}`, USUAL);
    expect(old.step || 'whole').toBe(name);
    expect(write(old)).toBe(`#/walk?text=x&layer=2${number ? `&step=${name}` : ''}`);
  });
  expect(read('#/walk?step=99', USUAL).step).toBe('choice');
  expect(write({ ...USUAL, step: 'whole' })).toBe(write(USUAL));
  expect(read('#/walk?step=cross.scores', USUAL).step).toBe('cross.scores');
});

test('branches grow, are cut, and are read back', () => {
  let tree = branches.grow([], [12, 34]);
  tree = branches.grow(tree, [12, 56, 7]);
  tree = branches.grow(tree, [78]);
  expect(branches.write(tree)).toBe('12(34,56(7)),78');
  expect(branches.read(branches.write(tree))).toEqual(tree);
  expect(branches.write(branches.cut(tree, [12, 56]))).toBe('12(34),78');
  expect(branches.grow(tree, [12, 34])).toEqual(tree);
  for (const nonsense of ['(', ')', '1(', 'x', '1))', '(1)']) expect(branches.read(nonsense)).toEqual([]);
});

test('numbers keep three digits and a true minus', () => {
  expect([0, 1, -1.5, 12.345, 0.012345, 1234.5, 0.00001234, -Infinity, NaN].map((v) => number(v))).toEqual(['0', '1.00', '−1.50', '12.3', '0.0123', '1,235', '1.23e−5', '−∞', '–']);
  expect([0, 0.00001, 0.0052, 0.484, 0.99999, 1].map((v) => percent(v))).toEqual(['0%', '<0.01%', '0.52%', '48.4%', '>99.9%', '100%']);
  expect(count(50257)).toBe('50,257');
  expect([124439808, 3554304, 812000, 12].map((v) => short(v))).toEqual(['124M', '3.6M', '812K', '12']);
  expect(bytes(497759232)).toBe('498\u00a0MB');
});

test('numbers are written as each language writes them', () => {
  expect([number(-1.5, 3, 'ru'), number(0.00001234, 3, 'ru'), percent(0.812, 'ru'), percent(0.00001, 'ru'), wholePercent(0.484, 'ru')]).toEqual(['−1,50', '1,23e−5', '81,2\u00a0%', '<0,01\u00a0%', '48\u00a0%']);
  expect([count(1152, 'ru'), short(124439808, 'ru'), short(1.5e9, 'ru'), bytes(8800, 'ru'), bytes(497759232, 'ru')]).toEqual(['1\u00a0152', '124\u00a0млн', '1,5\u00a0млрд', '8,8\u00a0кБ', '498\u00a0МБ']);
  expect([percent(1, 'zh-Hans'), percent(0.812, 'zh-Hans'), wholePercent(0.484, 'en'), count(50257, 'zh-Hans'), short(7322112, 'zh-Hans')]).toEqual(['100%', '81.2%', '48%', '50,257', '732万']);
});

test('a counted word takes the form its number wants', () => {
  const neurons = catalogue('ru')['neurons.size']!;
  const said = [1, 2, 5, 11, 21, 22, 25, 1152].map((n) => compose(neurons, 'ru', { count: n }));
  expect(said).toEqual(['1 нейрон', '2 нейрона', '5 нейронов', '11 нейронов', '21 нейрон', '22 нейрона', '25 нейронов', '1\u00a0152 нейрона']);
  expect(compose('{n|# токен|# токена|# токенов}', 'ru', { n: 1.5 })).toBe('1,5 токена');
  expect([1, 2].map((n) => compose(catalogue('en')['neurons.size']!, 'en', { count: n }))).toEqual(['1 neuron', '2 neurons']);
  expect(compose(catalogue('zh-Hans')['neurons.size']!, 'zh-Hans', { count: 1152 })).toBe('1,152 个神经元');
  expect(compose('{a} and {b}', 'en', { a: 'left' })).toBe('left and {b}');
});

test('tokens show their spaces, line ends and bytes', () => {
  expect(visible({ id: 1, text: ' the', bytes: '' })).toBe('·the');
  expect(visible({ id: 1, text: '\n\n', bytes: '' })).toBe('⏎⏎');
  expect(visible({ id: 1, text: null, bytes: 'e2 80' })).toBe('‹e2 80›');
  expect(visible({ id: 1, text: '\u200b', bytes: '' })).toBe('‹U+200B›');
});

test('float16 is decoded as it is meant', () => {
  const bits = new Uint16Array([0x3c00, 0xc000, 0x0001, 0x7c00, 0xfc00, 0x3555, 0]);
  const values = decode(bits.buffer, 'float16');
  expect(Array.from(values.slice(0, 5))).toEqual([1, -2, 2 ** -24, Infinity, -Infinity]);
  expect(values[5]).toBeCloseTo(1 / 3, 3);
  expect(() => table(new Float32Array(3).buffer, 'float32', '2,2')).toThrow('incomplete');
});

test('what stands out survives folding', () => {
  const vector = new Float32Array(768);
  vector[500] = -9;
  expect(Math.min(...foldVector(vector, 100))).toBe(-9);
  const big = new Float32Array(100 * 100);
  big[57 * 100 + 3] = 0.7;
  const folded = foldTable(big, 100, 100, { row: 0, column: 0, size: 100 }, 20);
  expect(folded.values[11 * 20 + 0]).toBeCloseTo(0.7);
  expect(foldTable(big, 100, 100, { row: 57, column: 0, size: 8 }, 20).values[3]).toBeCloseTo(0.7);
  expect(bring({ row: 0, column: 0, size: 8 }, 20, 3, 100, 100)).toEqual({ row: 13, column: 0, size: 8 });
});

test('scales begin and end at their stops', () => {
  const two = scale(['#000000', '#ffffff']);
  expect([css(two[0]!), css(two[255]!)]).toEqual(['#000000', '#ffffff']);
  expect([shareStep(0), shareStep(1), shareStep(NaN), signedStep(-5, 5), signedStep(0, 5), signedStep(5, 5)]).toEqual([0, 255, 0, 0, 128, 255]);
});

test('tokens that are parts of characters know which', () => {
  const token = (bytes: string, text: string | null = null) => ({ id: 0, text, bytes });
  const [a, b, c, d, e] = spell([token('e4'), token('bd a0'), token('20', ' '), token('f0 9f 99'), token('82')]);
  expect([a, b, d, e].map((one) => one!.of)).toEqual(['你', '你', '🙂', '🙂']);
  expect([visible(a!), visible(c!), stacked(b!)]).toEqual(['‹你 e4›', '·', { above: '你', below: 'bd a0' }]);
  expect(spell([token('a0'), token('e4 bd')]).map((one) => one.of)).toEqual([undefined, undefined]); // no character at all
  expect(spell([token('bd a0 e4'), token('bd a0')]).map((one) => one.of)).toEqual(['你', '你']); // after bytes that are none
});

test('a table row by row has every row at full colour, and keeps what is zero', () => {
  expect([...byRow(Float32Array.of(1, 0, 0.02, 0.01, 0, 0), 2)]).toEqual([1, 0, 1, 0.5, 0, 0]);
});
