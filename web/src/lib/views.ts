/** What the server's views answer: written by `make types` from their declarations in inspect/. */

/** One head of one layer: all its queries, or one of them with the keys it may look at. */
export interface Attention {
  layer: number;
  head: number;
  position: number | null;
  scale: number;
  queries?: number[][];
  keys?: number[][];
  values?: number[][];
  scores?: number[][];
  masked?: (number | null)[][];
  weights?: number[][];
  output?: number[][];
  merged?: number[][];
  projected?: number[][];
  attended?: number;
}

/** What every head of one attention looks at. */
export interface Attentions {
  of: string;
  layer: number;
  layers: number;
  queries: Token[];
  keys: Token[];
  weights: number[][][];
}

/** What each part adds to a token's logit, or to its lead over another's; together they are that number. */
export interface Attribution {
  position: number;
  token: Token;
  against: Token | null;
  logit: number;
  embedding: number;
  place: number;
  heads: number[][];
  attention_bias: number[];
  mlp: number[];
  mlp_bias: number[];
  norm_bias: number;
  rest: number;
}

/** How two runs differ in one respect, at one token of each; the largest differences first, or in their order. */
export interface Beside {
  of: 'next' | 'attention' | 'layers' | 'causes' | 'neurons' | 'stream' | 'written' | 'weights';
  unit: 'percent' | 'number';
  pairs: Pair[];
  position: number;
  other: number;
  rows: Difference[];
  distance: number | null;
  unlike: boolean;
}

/** One head of each model over the same pieces. */
export interface BothWays {
  pieces: Piece[];
  left: number[][];
  right: number[][];
  ahead: [number, number];
  cut: number;
  tokens: [Token[], Token[]];
  layers: [number, number];
  heads: [number, number];
  others: [number, number];
}

/** One token written: how many tokens went through the model for it, and how many only had to be looked up. */
export interface CacheStep {
  step: number;
  token: Token | null;
  read: number;
  reused: number;
  bytes_written: number;
  bytes_reused: number;
  multiplications: number;
  without: number;
}

/** A generation, step by step, with what each computed and what it reused. */
export interface CacheSteps {
  model: string;
  prompt: Token[];
  text: string;
  per_token_bytes: number;
  steps: CacheStep[];
  total: Total;
}

/** How likely a token is as the next one. */
export interface Candidate {
  token: Token;
  logit: number;
  probability: number;
  rank: number;
}

/** What changed between two runs over one text: in the stream, in the predictions, at one token in detail. */
export interface Changed {
  changes: Record<string, unknown>[];
  position: number;
  kl: number[];
  stream: number[][];
  before: Candidate[];
  after: Candidate[];
  moved: Moved[];
  id?: string;
  top_changed: boolean;
}

/** One token chosen. */
export interface Choice {
  chosen: number;
  die: number | null;
  after_top_k: number;
  possible: number;
  candidates: ChoiceCandidate[];
  line: [number, number, number][];
}

/** One token on its way from score to chance. */
export interface ChoiceCandidate {
  id: number;
  logit: number;
  own: number;
  warm: number;
  chance: number;
  cut: '' | 'top_k' | 'top_p';
}

/** A text as it was drawn, token by token. A step whose choice was the end token is the last. */
export interface Choices {
  words: Record<string, Token>;
  steps: Choice[];
  seed: number | null;
  reason: string;
  explanation: string;
  text: string;
}

/** What may stand at one place of the target: before training, after it, and what should. */
export interface Compared {
  token: Token;
  before: number;
  after: number;
  words: Token[];
  untrained: number[];
  trained: number[];
}

/** A place in the corpus at which a unit is strong. */
export interface Context {
  tokens: Token[];
  at: number;
  value: number;
  activations: number[];
}

/** One thing on both sides: its number on each, None where a side does not have it, and how far apart they are. */
export interface Difference {
  left: number | null;
  right: number | null;
  change: number;
  name: string;
  tokens: [Token | null, Token | null];
  same: boolean;
  position: number | null;
  layer: number | null;
  neuron: number | null;
}

/** What each part adds to the logit of the next token, after every token of the text at once. */
export interface Direct {
  targets: Token[];
  against: Token | null;
  parts: string[];
  values: number[][];
  logits: number[];
}

/** What each edge would bring back of the clean run, to first order. */
export interface Edges {
  metric: string;
  clean: number;
  corrupted: number;
  senders: string[];
  receivers: string[];
  scores: number[][];
  clean_tokens: Token[];
  corrupted_tokens: Token[];
}

/** What one model made of the sentence. */
export interface Entry {
  kind: string;
  weights: number;
  source: string[];
  text: string;
  ended: boolean;
  words: Word[];
  logprob: number;
  per_word: number;
  seconds: number;
  mean: Look | null;
  last: Look | null;
}

/** Where in a corpus one neuron, head or direction is strongest. */
export interface Excited {
  what: string;
  layer: number;
  unit: number;
  corpus: string | null;
  tokens: number;
  quantiles: [number, number][];
  contexts: Context[];
}

/** A token's way up the stack, and what each part on it adds to the logit of a next token. */
export interface Explained {
  path: Path;
  attribution: Attribution;
}

/** A pattern of firing: how strong it is at each token, and the neurons that take part. */
export interface Factor {
  tokens: number[];
  share: number;
  by_layer: number[];
  neurons: [number, number, number][];
}

/** The activations of some layers as a sum of a few factors, the strongest first. */
export interface Factors {
  method: string;
  layers: number[];
  unexplained: number;
  factors: Factor[];
  count: number;
}

/** A token followed through the layers. */
export interface Followed {
  token: Token;
  rank: number[][];
  probability: number[][];
}

/** A text that the search found. */
export interface Found {
  text: string;
  ids: number[];
  reason: string;
  score: number | null;
  node: number | null;
}

/** The gaps of a text, in order. All of them are empty at the same time: no guess helps with another. */
export interface Gaps {
  gaps: Hidden[];
}

/** Neurons that do alike on this text. */
export interface Group {
  mean: number[];
  by_layer: number[];
  examples: [number, number][];
  size: number;
}

/** All the neurons of some layers, in groups; the most active group first. */
export interface Groups {
  layers: number[];
  groups: Group[];
}

/** What may stand in a gap. */
export interface Guess {
  token: Token;
  probability: number;
}

/** All heads at a glance. Each measure is the mean over the queries that can have it. [layer, head] */
export interface Heads {
  layers: number[];
  entropy: number[][];
  distance: number[][];
  previous: number[][] | null;
  first: number[][] | null;
  itself: number[][];
  induction: number[][] | null;
  induction_queries: number;
  picture: Pictures | null;
}

/** One gap: what may stand there, and what stood there before it was hidden. */
export interface Hidden {
  position: number;
  guesses: Guess[];
  token: Token | null;
  probability: number | null;
  rank: number | null;
}

/** What one layer of the network holds after each word. */
export interface HiddenStates {
  name: string;
  stack: string;
  layer: number;
  values: number[][];
}

/** The probabilities of a reference, word by word, in this model and in one of its shape with random weights. */
export interface Learned {
  seed: number;
  loss_before: number;
  loss_after: number;
  places: Compared[];
}

/** The predictions after the embedding and after each block; the last row is the model's output. */
export interface Lens {
  positions: number[];
  layers: string[];
  chosen: Token[];
  rank: number[][];
  probability: number[][];
  top: [number, number][][][];
  words: Record<string, Token>;
  watch: Followed[];
}

/** A vector on its way up a stack. */
export interface Level {
  name: string;
  stack: string;
  layer: number | null;
  part: string;
  norm: number;
  values: number[];
}

/** How much of each word of the source went into each word of the translation; the mean over all heads. */
export interface Look {
  weights: number[][];
  rest: number[];
}

/** The head that looks most from one token to another. */
export interface Looking {
  layer: number;
  head: number;
  weight: number;
}

/** One measure of every head: the mean over the queries of all texts, and how sure it is. */
export interface Measured {
  mean: number[][];
  margin: number[][];
}

/** A token whose probability changed. */
export interface Moved {
  token: Token;
  before: number;
  after: number;
}

/** A word of the static vectors, and how near it is. */
export interface Near {
  word: string;
  cosine: number;
}

/** A word of an example sentence, with what stands before and after it, and how near its vector is. */
export interface Neighbour {
  before: string;
  word: string;
  after: string;
  cosine: number;
}

/** One neuron over the whole text. */
export interface Neuron {
  layer: number;
  neuron: number;
  activations: number[];
  at: number;
  writes: [Token, number][];
  peak: number;
}

/** The strongest neurons of some layers, at one token or anywhere, and how many fire at all. */
export interface Neurons {
  position: number | null;
  layers: number[];
  active: number[][];
  neurons: Neuron[];
}

/** The likeliest next tokens: `own` is the model's probability, `chance` what temperature, top-k and top-p leave. */
export interface Next {
  position: number;
  tokens: Token[];
  own: number[];
  chance: number[];
  possible: number;
  vocabulary: number;
  drawn: Token | null;
}

/** A text that was looked at, by its newest token and the node it continues. */
export interface Node {
  id: number;
  parent: number | null;
  depth: number;
  token: Token | null;
  logprob: number;
  total: number;
  score: number;
  kept: boolean;
  reason: string;
  result: number | null;
}

/** One layer's attention from notes to earlier notes. */
export interface Notes {
  layer: number;
  notes: number[];
  attended: number[][][];
  weights: number[][][];
  rest: number[][];
}

/** Positions that stand side by side; None where a side has nothing there. */
export interface Pair {
  left: number | null;
  right: number | null;
  same: boolean;
}

/** One token's journey: token, with its position, after attention and after the MLP of each block, final norm. */
export interface Path {
  position: number;
  steps: PathStep[];
}

/** The vector after one step. */
export interface PathStep {
  name: string;
  norm: number;
  to_before: number | null;
  to_last: number;
}

/** The metric of the corrupted run where receivers read one sender as in the clean run, for every sender. */
export interface Paths {
  metric: string;
  receivers: string[];
  senders: string[];
  values: number[];
  clean: number;
  corrupted: number;
  clean_tokens: Token[];
  corrupted_tokens: Token[];
  recovered: number[];
}

/** A matrix in at most so many cells each way; a vector is one row. */
export interface Picture {
  name: string;
  shape: number[];
  mean: number[][];
  low: number[][];
  high: number[][];
  spread: number[][];
  total: Record<string, number>;
  rows: number;
  columns: number;
}

/** Small pictures of the weights of heads. */
export interface Pictures {
  size: number;
  pixels: string[][];
}

/** The shortest stretch of the sentence at whose ends both models cut; the tokens it is on either side. */
export interface Piece {
  text: string;
  left: number[];
  right: number[];
}

/** Each head's attention in texts of random tokens that are said twice over, in the second half. */
export interface Roles {
  texts: number;
  tokens: number;
  seed: number;
  induction: Measured;
  previous: Measured;
  duplicate: Measured;
  copying: Measured | null;
  names: Measured | null;
  copied: number;
  named: number;
  queries: number;
}

/** For each target, the share of each token before it, and whether it spoke for the target or against it. */
export interface Saliency {
  method: 'gradient' | 'integrated' | 'occlusion' | 'rollout' | 'values';
  targets: Target[];
  span: boolean;
  share: number[][];
  signed: number[][];
  norm: number[];
  number: number[];
  total: number[];
  gap: number[] | null;
}

/** A word in two texts. */
export interface Senses {
  word: string;
  tokens: Token[];
  positions: [number[], number[]];
  layers: string[];
  layer: number;
  cosines: number[];
  vectors: number[][];
  neighbours: [Neighbour[], Neighbour[]];
  sentences: number;
  static_name: string;
  static: number[];
  static_neighbours: Near[];
}

/** Texts, and how near every two of them are. */
export interface Sentences {
  texts: string[];
  tokens: number[];
  cosines: number[][];
  width: number;
}

/** A model's map, and the views that fit it. */
export interface Shown {
  kind: string;
  title: string;
  layers: number;
  steps: StepSpec[];
  places: Thing[];
  stacks: Stack[];
  views: string[];
}

/** What is added to each position, in one layout. */
export interface Sinusoids {
  layout: string;
  own: string;
  values: number[][];
}

/** The encoder or the decoder of a model of two texts, as a map of its own. Its names are those of the whole without
`encoder.` or `decoder.`; what the decoder takes from the encoder keeps it. */
export interface Stack {
  name: string;
  layers: number;
  steps: StepSpec[];
  places: Thing[];
}

/** One token's vectors up the encoder, and one's up the decoder. */
export interface Stacks {
  source: number;
  target: number;
  heads: number;
  norm: string;
  levels: Level[];
}

/** One step of the walk. */
export interface StepSpec {
  name: string;
  operation: string;
  group: string;
  places?: string[];
  block?: boolean;
  named?: boolean;
}

/** The metric of a run with one piece of it replaced, for every piece. */
export interface Sweep {
  what: string;
  how: string;
  exact: boolean;
  metric: string;
  layers: number[];
  units: number[];
  values: number[][];
  clean: number;
  corrupted: number | null;
  clean_tokens: Token[];
  corrupted_tokens: Token[];
  axes: [string, string];
  base: number;
  recovered: number[][] | null;
}

/** A token to explain. */
export interface Target {
  position: number;
  token: Token;
  probability: number;
  against: Token | null;
}

/** A place as the pages draw it; one that every block has stands here once. */
export interface Thing {
  name: string;
  axes: string[];
  operation: string;
  inputs: string[];
  kind: string;
  module?: string;
}

/** An entry of the vocabulary: its id and its bytes. */
export interface Token {
  id: number;
  bytes: string;
  gpt2?: number;
  text: string | null;
}

/** All steps together. */
export interface Total {
  multiplications: number;
  without: number;
  bytes: number;
}

/** A source, its translation, and how likely each token was when it was written. */
export interface Translation {
  source: Token[];
  start: Token;
  target: Token[];
  given: number;
  ended: boolean;
  text: string;
  steps: Written[];
}

/** A beam search from its prompt to its results, in the order of the search. */
export interface Tree {
  model: string;
  prompt: Token[];
  beams: number;
  nodes: Node[];
  results: Found[];
}

/** A recurrent network, unrolled: its hidden states word by word, and what goes over to the decoder. */
export interface Unrolled {
  cell: string;
  attention: string;
  bidirectional: boolean;
  source: Token[];
  decoder: Token[];
  states: HiddenStates[];
  last: number[][];
  context: number[][] | null;
}

/** The numbers of an intermediate, with the names of their axes. */
export interface Values {
  name: string;
  axes: string[];
  values: (number | null)[] | (number | null)[][] | (number | null)[][][];
  shape: number[];
  norm: number | null;
}

/** A word of a translation. */
export interface Word {
  text: string;
  name: string;
  logprob: number;
}

/** One text, written once, seen both ways. */
export interface Writing {
  choices: Choices;
  cache: CacheSteps;
}

/** How a token of the target was chosen. */
export interface Written {
  probability: number;
  top: Token[];
  probabilities: number[];
}
