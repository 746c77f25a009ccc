var draw = (function() {
	// src/offline/parts.ts
	var make = (tag, text, name) => {
		const node = document.createElement(tag);
		if (text !== void 0 && text !== null) node.textContent = String(text);
		if (name) node.className = name;
		return node;
	};
	var add = (parent, ...children) => (parent.append(...children), parent);
	var visible = (token) => token.text === null ? `‹${token.bytes}›` : token.text.replace(/ /g, "·").replace(/\n/g, "⏎").replace(/\t/g, "⇥").replace(/\r/g, "␍");
	var percent = (share) => share === null ? "" : share !== 0 && share < 5e-5 ? "<0.01%" : `${(100 * share).toFixed(2)}%`;
	var number = (value) => value === null || value === void 0 ? "" : Number.isInteger(value) ? value.toLocaleString("en") : String(+value.toPrecision(4));
	var tint = (hue, share) => `color-mix(in srgb, var(--${hue}) ${Math.round(Math.min(1, Math.max(0, share)) * 75)}%, transparent)`;
	var largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value ?? 0)), 0) || 1;
	var section = (root, title, text = "") => {
		if (title) root.append(make("h2", title));
		if (text) root.append(make("p", text, "faint"));
	};
	/** The text as chips; `shares` (0 to 1) tints them, in the other colour where one is `against`; `notes` is what pointing at one says. */
	var chips = (tokens, shares, hue = "token", notes, against) => {
		const line = make("div", void 0, "chips");
		tokens.forEach((token, i) => {
			const chip = make("span", visible(token), "chip");
			if (shares) chip.style.background = tint(against?.[i] ? "minus" : hue, shares[i] ?? 0);
			chip.title = `${i}: ${notes ? notes[i] : `id ${token.id}`}`;
			line.append(chip);
			if (token.text && token.text.endsWith("\n")) line.append(make("br"));
		});
		return line;
	};
	/** Rows of [label, value, note], as bars to the right; negative ones in the other colour. */
	var bars = (rows, { show = number, most } = {}) => {
		const table = make("table");
		const longest = most ?? largest(rows.map((row) => row[1]));
		for (const [label, value, note] of rows) {
			const bar = make("span", void 0, "bar");
			bar.style.width = `${14 * Math.abs(value) / longest}em`;
			if (value < 0) bar.style.background = "var(--minus)";
			table.append(add(make("tr"), make("td", label, "word"), make("td", show(value)), add(make("td", void 0, "word"), bar), make("td", note ?? "", "faint")));
		}
		return table;
	};
	var table = (heads, rows) => {
		const whole = make("table");
		whole.append(add(make("tr"), ...heads.map((head) => make("th", head))));
		for (const row of rows) {
			const line = make("tr");
			for (const cell of row) {
				const { text, word, tint: share, title } = typeof cell === "object" ? cell : { text: String(cell) };
				const one = make("td", text, word ? "word" : "");
				if (share !== void 0) one.style.background = tint("weight", share);
				if (title) one.title = title;
				line.append(one);
			}
			whole.append(line);
		}
		return add(make("div", void 0, "scroll"), whole);
	};
	var ground = document.documentElement;
	var standOn = (element) => void (ground = element);
	var colour = (name) => {
		const canvas = document.createElement("canvas").getContext("2d");
		canvas.fillStyle = getComputedStyle(ground).getPropertyValue(`--${name}`).trim();
		canvas.fillRect(0, 0, 1, 1);
		return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
	};
	/** A matrix as a picture, its rows (and columns) named, of many as many as can be read; pointing at a cell, or going there with the arrow keys,
	*  says its numbers. The strongest of all has the full colour, or `byRow` the strongest of each row. null cells (the mask) stay empty. */
	var heat = (matrix, describe, labels, { across, byRow = false } = {}) => {
		const rows = matrix.length, columns = matrix[0].length;
		const values = matrix.flat(), darkest = matrix.map(largest);
		const most = largest(values);
		const [plus, minus] = [colour("plus"), colour("minus")];
		const canvas = make("canvas");
		[canvas.width, canvas.height] = [columns, rows];
		const cell = Math.max(1, Math.min(22, Math.floor(900 / columns)));
		const high = rows <= 64 ? Math.max(14, cell) : cell;
		[canvas.style.width, canvas.style.height] = [`${columns * cell}px`, `${rows * high}px`];
		canvas.setAttribute("role", "img");
		canvas.setAttribute("aria-label", `${rows} rows, ${columns} columns; full colour is ${byRow ? "the strongest of its row" : number(most)}. Arrow keys go from cell to cell.`);
		canvas.tabIndex = 0;
		const image = new ImageData(columns, rows);
		values.forEach((value, i) => {
			if (value === null) return;
			const ink = value < 0 ? minus : plus;
			const share = Math.abs(value) / (byRow ? darkest[Math.floor(i / columns)] : most);
			image.data.set([...ink, Math.round(255 * (byRow ? share ** .6 : share))], 4 * i);
		});
		canvas.getContext("2d").putImageData(image, 0, 0);
		const note = make("p", " ", "note"), mark = make("span", void 0, "mark"), field = add(make("div", void 0, "field"), canvas, mark);
		note.setAttribute("aria-live", "polite");
		const at = [0, 0];
		const tell = (row, column) => {
			[at[0], at[1]] = [Math.max(0, Math.min(rows - 1, row)), Math.max(0, Math.min(columns - 1, column))];
			note.textContent = describe(at[0], at[1], matrix[at[0]][at[1]]);
		};
		const frame = () => {
			const [wide, high] = [canvas.clientWidth / columns, canvas.clientHeight / rows];
			Object.assign(mark.style, {
				left: `${at[1] * wide}px`,
				top: `${at[0] * high}px`,
				width: `${wide}px`,
				height: `${high}px`
			});
		};
		canvas.addEventListener("mousemove", (event) => tell(Math.floor(event.offsetY / canvas.clientHeight * rows), Math.floor(event.offsetX / canvas.clientWidth * columns)));
		canvas.addEventListener("focus", () => (tell(...at), frame()));
		canvas.addEventListener("keydown", (event) => {
			const to = {
				ArrowUp: [at[0] - 1, at[1]],
				ArrowDown: [at[0] + 1, at[1]],
				ArrowLeft: [at[0], at[1] - 1],
				ArrowRight: [at[0], at[1] + 1],
				Home: [at[0], 0],
				End: [at[0], columns - 1]
			}[event.key];
			if (!to) return;
			event.preventDefault();
			tell(...to);
			frame();
		});
		const scale = make("p", `full colour: ${byRow ? "the strongest of its row" : number(most)}`, "faint");
		if (!labels) return add(make("div"), field, scale, note);
		const named = (list, size, place) => {
			const stride = Math.ceil(14 / size);
			return list.flatMap((label, i) => i % stride ? [] : [place(make("div", stride > 1 ? `${i} ${label}` : label), i * size)]);
		};
		const names = add(make("div", void 0, "labels"), ...named(labels, high, (line, at) => {
			line.style.top = `${at + (high - 14) / 2}px`;
			return line;
		}));
		names.style.height = `${rows * high}px`;
		const over = add(make("div", void 0, "over"), ...named(across ?? [], cell, (line, at) => {
			line.style.left = `${at + cell / 2}px`;
			return line;
		}));
		canvas.style.maxWidth = "none";
		return add(make("div"), add(make("div", void 0, "labelled"), names, add(make("div"), ...across ? [over] : [], field)), scale, note);
	};
	/** One of several pictures, chosen with buttons. */
	var choose = (names, build) => {
		const whole = make("div"), row = make("p"), place = make("div");
		const pick = (name) => {
			place.replaceChildren(build(name));
			for (const button of row.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.name === String(name)));
		};
		for (const [name, label] of names) {
			const button = make("button", label, "chip");
			button.dataset.name = String(name);
			button.addEventListener("click", () => pick(name));
			row.append(button);
		}
		if (names[0]) pick(names[0][0]);
		return add(whole, row, place);
	};
	var pixels = (encoded, size) => {
		const canvas = make("canvas"), bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0)), ink = colour("weight");
		[canvas.width, canvas.height] = [size, size];
		const image = new ImageData(size, size);
		bytes.forEach((level, i) => image.data.set([...ink, level], 4 * i));
		canvas.getContext("2d").putImageData(image, 0, 0);
		return canvas;
	};
	var candidates = (list) => bars(list.map((one) => [
		visible(one.token),
		one.probability,
		`logit ${number(one.logit)}`
	]), {
		show: percent,
		most: 1
	});
	// src/offline/encoders.ts
	var TEXT = 60;
	var PAIRS = 20;
	var named$1 = (text) => text.length > TEXT ? `${text.slice(0, 59)}…` : text;
	var nearest = (found) => add(make("div"), ...found.map((one) => add(make("p"), make("span", `${one.cosine.toFixed(3)}  `, "faint"), document.createTextNode(one.before), make("strong", one.word), document.createTextNode(one.after))));
	var encoders = {
		gaps(root, run, data) {
			if (!data.gaps.length) return section(root, "No gap", "Nothing of this text is hidden: choose a token to hide, or write [MASK] in the text.");
			const at = new Map(data.gaps.map((gap) => [gap.position, gap]));
			section(root, "The text, its gaps filled", "In each gap stands the likeliest word, tinted by its probability. All gaps were empty at the same time: no guess helps with another.");
			root.append(chips(run.tokens.map((token, i) => at.get(i)?.guesses[0]?.token ?? token), run.tokens.map((_, i) => at.get(i)?.guesses[0]?.probability ?? 0), "weight", run.tokens.map((token, i) => at.has(i) ? `${percent(at.get(i).guesses[0].probability)}; before ${visible(token)}` : `id ${token.id}`)));
			for (const { position, guesses, token, probability, rank } of data.gaps) {
				section(root, `Token ${position}`, token ? `Hidden: ${visible(token)}, which is given ${percent(probability)}, place ${number(rank)} of all.` : "The text itself has [MASK] here.");
				root.append(bars(guesses.map((guess) => [
					visible(guess.token),
					guess.probability,
					guess.token.id === token?.id ? "stood here" : ""
				]), {
					show: percent,
					most: 1
				}));
			}
		},
		sentences(root, _, data) {
			const { texts, tokens, cosines } = data;
			section(root, texts.length === 1 ? "One text" : `${texts.length} texts`, `The cosine of the vectors (${number(data.width)} numbers each) of every two texts, tinted by it: 1 the same direction, 0 nothing in common, below 0 opposite.`);
			root.append(table([
				"text",
				"tokens",
				...texts.map((_, i) => `${i}`)
			], texts.map((text, i) => [
				{
					text: `${i}  ${named$1(text)}`,
					word: true,
					title: text
				},
				tokens[i],
				...cosines[i].map((value, j) => ({
					text: value.toFixed(3),
					tint: value,
					title: `${named$1(text)} – ${named$1(texts[j])}`
				}))
			])));
			const pairs = cosines.flatMap((row, i) => row.slice(0, i).map((value, j) => [
				`${j} – ${i}`,
				value,
				`${named$1(texts[j])} – ${named$1(texts[i])}`
			]));
			if (!pairs.length) return;
			section(root, "The nearest first", pairs.length > PAIRS ? `${PAIRS} of ${number(pairs.length)} pairs.` : "");
			root.append(add(make("div", void 0, "scroll"), bars(pairs.sort((a, b) => b[1] - a[1]).slice(0, PAIRS), {
				show: (value) => value.toFixed(3),
				most: 1
			})));
		},
		senses(root, run, data) {
			const texts = ["first text", "other text"], [first, other] = data.positions, layer = data.layers[data.layer];
			section(root, `${data.word}, in two texts`);
			root.append(chips(run.tokens, run.tokens.map((_, i) => first.includes(i) ? 1 : 0), "weight"), chips(data.tokens, data.tokens.map((_, i) => other.includes(i) ? 1 : 0), "weight"));
			section(root, "How alike its two vectors are", "Their cosine in each layer: 1 is the same direction.");
			root.append(bars(data.layers.map((name, i) => [
				name,
				data.cosines[i],
				i === data.layer ? "shown below" : ""
			]), { most: 1 }));
			section(root, `Its vectors, ${layer}`, `A column is one of their ${number(data.vectors[0].length)} numbers.`);
			root.append(heat(data.vectors, (row, column, value) => `${texts[row]}, column ${column}: ${number(value)}`, [...texts]));
			section(root, "Its neighbours", `The words of ${number(data.sentences)} example sentences whose vectors are nearest in ${layer}, and how near (cosine).`);
			root.append(add(make("div", void 0, "columns"), ...data.neighbours.map((found, i) => add(make("div"), make("h2", `in the ${texts[i]}`), nearest(found)))));
			section(root, `Without a text: ${data.static_name}`, data.static.length ? "The one vector that the word always has there, and its nearest words." : `${data.word} is none of its words.`);
			if (!data.static.length) return;
			const most = largest(data.static);
			root.append(heat([data.static], (_, column, value) => `column ${column}: ${number(value)} of at most ${number(most)}`, [data.word]), bars(data.static_neighbours.map((one) => [one.word, one.cosine]), { most: 1 }));
		}
	};
	// src/offline/pairs.ts
	var ATTENTIONS = {
		cross: "A row is a token that goes into the decoder, a column the token of the source it looks at.",
		encoder: "A row is a token of the source that looks, a column the token of the source it looks at.",
		decoder: "A row is a token that goes into the decoder, a column the one before it, or itself, that it looks at."
	};
	var mean = (matrices) => matrices[0].map((row, i) => row.map((_, j) => matrices.reduce((sum, one) => sum + one[i][j], 0) / matrices.length));
	var stand = (level) => level.layer === null ? level.part : `layer ${level.layer}, ${level.part}`;
	/** A token of the source, or of the decoder's rows, which begin with the start token: the last of what a run was given. */
	var named = (run, at, decoder = false) => {
		const token = run.tokens[decoder ? (run.prompt ?? NaN) - 1 + at : at];
		return `${decoder ? "row" : "token"} ${at}${token ? `, ${visible(token)}` : ""}`;
	};
	var pairs = {
		translation(root, _, data) {
			const from = data.given ? ` The first ${data.given} were given.` : "";
			section(root, "The source");
			root.append(chips(data.source));
			section(root, "Its translation", `Tinted by the probability of each token when it was written.${from} ${data.ended ? "It came to its end." : "It was stopped before its end."}`);
			root.append(make("p", data.text), chips(data.target, data.steps.map((step) => step.probability), "token", data.steps.map((step) => percent(step.probability))));
			section(root, "How each token was chosen", "Its probability, and the likeliest that might have stood there. The start token comes first: the first row is chosen by it alone.");
			root.append(table([
				"",
				"token",
				"probability",
				...(data.steps[0]?.top ?? []).map((_, i) => `${i + 1}`)
			], data.steps.map((step, i) => [
				i < data.given ? "given" : "",
				{
					text: visible(data.target[i]),
					word: true
				},
				percent(step.probability),
				...step.top.map((token, j) => ({
					text: `${visible(token)}  ${percent(step.probabilities[j])}`,
					word: true,
					tint: step.probabilities[j]
				}))
			])));
		},
		attentions(root, _, data) {
			const { queries, keys, weights } = data, heads = weights.length, rows = queries.map(visible), columns = keys.map(visible);
			section(root, `${data.of} attention${data.layers > 1 ? `, layer ${data.layer} of 0 to ${data.layers - 1}` : ""}`, `${ATTENTIONS[data.of] ?? ""} A row sums to 1.`);
			const names = [...heads > 1 ? [[-1, "mean"]] : [], ...weights.map((_, head) => [head, `head ${head}`])];
			root.append(choose(names, (head) => heat(head < 0 ? mean(weights) : weights[head], (row, column, value) => `${rows[row]} → ${columns[column]}: ${number(value)}`, rows, {
				across: columns,
				byRow: rows.length > 48
			})));
		},
		unrolled(root, _, data) {
			const { source, decoder, states, last, context } = data;
			section(root, `A recurrent network (${data.cell})`, `Attention: ${data.attention}.${data.bidirectional ? " The second half of each of the encoder's vectors was read from the end." : ""}`);
			root.append(chips(source), chips(decoder));
			section(root, "Word by word", "What a layer holds after each token: a row is a token, a column one of its numbers.");
			const rows = (state) => state.stack === "encoder" ? source : decoder;
			root.append(choose(states.map((state, i) => [i, `${state.stack}, layer ${state.layer}`]), (i) => heat(states[i].values, (row, column, value) => `after ${visible(rows(states[i])[row])}, column ${column}: ${number(value)}`, rows(states[i]).map(visible))));
			section(root, "What goes over", "The state that each layer of the decoder begins with: a row is a layer.");
			root.append(heat(last, (row, column, value) => `layer ${row}, column ${column}: ${number(value)}`, last.map((_, layer) => `layer ${layer}`)));
			if (!context) return section(root, "No attention", "The decoder knows nothing of the source but what goes over.");
			section(root, "What attention brings", "From the source, for each token that goes into the decoder: the mean of the encoder's vectors by its weights.");
			root.append(heat(context, (row, column, value) => `for ${visible(decoder[row])}, column ${column}: ${number(value)}`, decoder.map(visible)));
		},
		stacks(root, run, data) {
			section(root, "Up both stacks", `After each part of each block, from the entry on: how long the vector is, and its numbers. ${data.heads} heads; the norm is ${data.norm === "pre" ? "before" : "after"} each part.`);
			const longest = largest(data.levels.map((level) => level.norm));
			for (const [stack, what] of [["encoder", named(run, data.source)], ["decoder", named(run, data.target, true)]]) {
				const levels = data.levels.filter((level) => level.stack === stack);
				section(root, `${stack}: ${what}`);
				root.append(bars(levels.map((level) => [stand(level), level.norm]), { most: longest }), heat(levels.map((level) => level.values), (row, column, value) => `${stand(levels[row])}, column ${column}: ${number(value)}`, levels.map((level) => level.layer === null ? level.part : `${level.layer}, ${level.part}`)));
			}
		},
		learned(root, _, data) {
			section(root, "What the right words are given", `The mean of −log of their probabilities (nats): ${number(data.loss_before)} with random weights (seed ${data.seed}), ${number(data.loss_after)} after training.`);
			root.append(chips(data.places.map((place) => place.token), data.places.map((place) => place.after), "token", data.places.map((place) => `${percent(place.before)} before, ${percent(place.after)} after`)));
			section(root, "Word by word", "The likeliest after training, and with them the right word (in brackets): their probability after training, and before it.");
			const most = data.places[0]?.words.length ?? 0;
			root.append(table([
				"right",
				"before",
				"after",
				...Array.from({ length: most }, (_, i) => `${i + 1}`)
			], data.places.map((place) => [
				{
					text: visible(place.token),
					word: true
				},
				percent(place.before),
				{
					text: percent(place.after),
					tint: place.after
				},
				...place.words.map((token, i) => ({
					text: `${token.id === place.token.id ? `(${visible(token)})` : visible(token)}  ${percent(place.trained[i])} ← ${percent(place.untrained[i])}`,
					word: true,
					tint: place.trained[i]
				}))
			])));
		},
		sinusoids(root, _, data) {
			const columns = data.values[0].length;
			section(root, `Sinusoids, ${data.layout}`, `What is added to the vector at each position: a row is a position, a column one of ${number(columns)} numbers. ${data.layout === "halves" ? "All sines come first, then all cosines." : "A sine and the cosine of its frequency stand side by side."} ${data.layout === data.own ? "The model's own layout." : `The model's own layout is ${data.own}.`}`);
			const wave = (column) => (data.layout === "halves" ? column < columns / 2 : column % 2 === 0) ? "sine" : "cosine";
			root.append(heat(data.values, (row, column, value) => `position ${row}, column ${column} (${wave(column)}): ${number(value)}`, data.values.map((_, row) => `position ${row}`)));
		}
	};
	// src/offline/draw.ts
	var views = {
		attention(root, run, data) {
			const words = run.tokens.map(visible);
			section(root, `Layer ${data.layer}, head ${data.head}`, "A row is a token that looks, a column the token it looks at. A row of weights sums to 1.");
			const first = data.position ?? 0;
			const tables = [
				"weights",
				"masked",
				"scores"
			].flatMap((name) => data[name] ? [[name, data[name]]] : []);
			const matrix = (of, name) => of.find(([one]) => one === name)[1];
			root.append(choose(tables.map(([name]) => [name, name]), (name) => {
				const shown = matrix(tables, name);
				return heat(shown, (row, column, value) => `${words[first + row]} → ${words[column]}: ${value === null ? "masked" : number(value)}`, words.slice(first, first + shown.length), {
					across: words.slice(0, shown[0].length),
					byRow: name === "weights" && shown.length > 48
				});
			}));
			const rows = [
				"queries",
				"keys",
				"values",
				"output",
				"merged",
				"projected"
			].flatMap((name) => data[name] ? [[name, data[name]]] : []);
			if (rows.length) section(root, "Vectors", "A row is a token, a column a number of its vector.");
			if (rows.length) root.append(choose(rows.map(([name]) => [name, name]), (name) => heat(matrix(rows, name), (row, column, value) => `${words[(name === "keys" || name === "values" ? 0 : first) + row]}, ${name} ${column}: ${number(value)}`)));
		},
		heads(root, _, data) {
			const { picture } = data;
			if (picture) {
				section(root, "All heads", "A row is a layer. In a picture a row is a token that looks, a column what it looks at.");
				const grid = make("div", void 0, "grid");
				grid.style.gridTemplateColumns = `repeat(${picture.pixels[0].length}, 56px)`;
				picture.pixels.forEach((row, i) => row.forEach((encoded, head) => {
					const canvas = pixels(encoded, picture.size);
					canvas.title = `layer ${data.layers[i]}, head ${head}: entropy ${number(data.entropy[i][head])} bits, ${number(data.distance[i][head])} tokens back`;
					grid.append(canvas);
				}));
				root.append(add(make("div", void 0, "scroll"), grid));
			}
			for (const name of [
				"entropy",
				"distance",
				"previous",
				"first",
				"itself",
				"induction"
			]) {
				const measured = data[name];
				if (!measured) continue;
				const most = largest(measured.flat());
				section(root, name, name === "induction" ? `from ${data.induction_queries} ${data.induction_queries === 1 ? "query" : "queries"}` : "");
				root.append(table(["layer", ...measured[0].map((_, head) => `head ${head}`)], measured.map((row, i) => [data.layers[i], ...row.map((value) => ({
					text: number(value),
					tint: value / most
				}))])));
			}
		},
		roles(root, _, data) {
			section(root, "What kind of head each is", `${data.texts} texts of ${data.tokens} random tokens, each said twice: ${number(data.queries)} queries.`);
			for (const [name, what] of [
				["induction", "The weight on what followed this token the first time."],
				["previous", "The weight on the token before."],
				["duplicate", "The weight on the same token the first time."]
			]) {
				section(root, name, what);
				const { mean, margin } = data[name];
				root.append(table(["layer", ...mean[0].map((_, head) => `head ${head}`)], mean.map((row, i) => [i, ...row.map((value, head) => ({
					text: number(value),
					tint: value,
					title: `± ${number(margin[i][head])} (95%)`
				}))])));
			}
		},
		path(root, run, data) {
			section(root, `The way of ${visible(run.tokens[data.path.position])} (token ${data.path.position})`, "The length of its vector after each step, and how it turns.");
			root.append(bars(data.path.steps.map((step) => [
				step.name,
				step.norm,
				`to the step before ${number(step.to_before)} · to the last ${number(step.to_last)}`
			])));
			const parts = data.attribution;
			section(root, `What each part adds to the logit of ${visible(parts.token)}${parts.against ? ` over ${visible(parts.against)}` : ""}: ${number(parts.logit)}`);
			const rows = [
				["token embedding", parts.embedding],
				["position", parts.place],
				["final norm's shift", parts.norm_bias],
				["rest", parts.rest]
			];
			parts.heads.forEach((layer, i) => layer.forEach((value, head) => rows.push([`layer ${i}, head ${head}`, value])));
			for (const [name, label] of [
				["mlp", "MLP"],
				["attention_bias", "attention bias"],
				["mlp_bias", "MLP bias"]
			]) parts[name].forEach((value, i) => rows.push([`layer ${i}, ${label}`, value]));
			root.append(bars(rows.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]))));
		},
		lens(root, run, data) {
			section(root, "After each layer", "The likeliest next token if the stack ended there, tinted by its probability; the number is the rank of the token that comes, or in brackets would come.");
			const words = (pair) => visible(data.words[pair[0]]);
			const cell = (l, i) => data.top[l][i];
			root.append(table([
				"token",
				"next",
				...data.layers
			], data.positions.map((position, i) => [
				{
					text: visible(run.tokens[position]),
					word: true
				},
				{
					text: position + 1 < run.tokens.length ? visible(data.chosen[i]) : `(${visible(data.chosen[i])})`,
					word: true
				},
				...data.layers.map((layer, l) => ({
					text: `${words(cell(l, i)[0])}  ${data.rank[l][i].toLocaleString("en")}`,
					word: true,
					tint: cell(l, i)[0][1],
					title: `${layer}: ${cell(l, i).map((pair) => `${words(pair)} ${percent(pair[1])}`).join(", ")}`
				}))
			])));
			for (const one of data.watch) {
				section(root, `Watched: ${visible(one.token)}`, "Its rank after each layer.");
				root.append(table(["token", ...data.layers], data.positions.map((position, i) => [{
					text: visible(run.tokens[position]),
					word: true
				}, ...data.layers.map((_, l) => ({
					text: number(one.rank[l][i]),
					tint: one.probability[l][i],
					title: percent(one.probability[l][i])
				}))])));
			}
		},
		saliency(root, run, data) {
			section(root, "Which tokens caused it", `Choose a token: those before it are tinted by their share (${data.method}); orange ones, with a minus, speak against it.`);
			root.append(choose(data.targets.map((target, i) => [i, visible(target.token)]), (i) => {
				const share = data.share[i], signed = data.signed[i], most = largest(share), against = signed.map((value) => value < 0);
				const said = (value) => `${value < 0 ? "−" : ""}${percent(Math.abs(value))}`, sum = (at) => `${signed[at] < 0 ? "−" : "+"}${number(Math.abs(signed[at]))}`;
				return add(make("div"), chips(run.tokens, share.map((value) => value / most), "token", share.map((value, at) => `${said(against[at] ? -value : value)}, ${sum(at)}`), against), bars(share.map((value, at) => [
					`${visible(run.tokens[at])}`,
					against[at] ? -value : value,
					`token ${at}, ${sum(at)} logits`
				]).filter((row) => row[1] !== 0).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 20), { show: said }));
			}));
		},
		neurons(root, run, data) {
			section(root, "The strongest neurons", "The text tinted by each neuron's activation, and the next tokens it speaks for.");
			for (const one of data.neurons) root.append(make("h2", `layer ${one.layer}, neuron ${one.neuron}: ${number(one.peak)} at token ${one.at}`), make("p", `speaks for ${one.writes.map(([token]) => visible(token)).join("  ")}`, "faint"), chips(run.tokens, one.activations.map((value) => value / (one.peak || 1)), "neuron", one.activations.map(number)));
			section(root, "How many fire", "The share of a layer's neurons above 0, by token.");
			root.append(heat(data.active, (row, column, value) => `layer ${data.layers[row]}, ${visible(run.tokens[column])}: ${percent(value)}`, data.layers.map((layer) => `layer ${layer}`)));
		},
		groups(root, run, data) {
			section(root, "Neurons that do alike on this text");
			for (const group of data.groups) {
				const most = largest(group.mean);
				root.append(make("h2", `${group.size.toLocaleString("en")} neurons`), make("p", `by layer ${group.by_layer.join(" ")} · for example ${group.examples.map(([layer, neuron]) => `${layer}/${neuron}`).join(" ")}`, "faint"), chips(run.tokens, group.mean.map((value) => value / most), "neuron", group.mean.map(number)));
			}
		},
		factors(root, run, data) {
			section(root, `${data.count} factors`, `Patterns of firing, the strongest first; together they leave ${percent(data.unexplained)} of the activations' sum of squares unexplained.`);
			data.factors.forEach((factor, i) => root.append(make("h2", `factor ${i}: ${percent(factor.share)}`), make("p", `neurons ${factor.neurons.map(([layer, neuron]) => `${layer}/${neuron}`).join(" ")}`, "faint"), chips(run.tokens, factor.tokens, "neuron", factor.tokens.map(number))));
		},
		change(root, run, data) {
			section(root, `After token ${data.position}, ${visible(run.tokens[data.position])}`, data.changes.map((one) => Object.entries(one).filter(([, value]) => value !== null && value !== "").map(([name, value]) => name === "kind" ? String(value).replace("_", " ") : `${name} ${value}`).join(", ")).join("; "));
			root.append(add(make("div", void 0, "columns"), add(make("div"), make("h2", "before"), candidates(data.before)), add(make("div"), make("h2", "after"), candidates(data.after))));
			section(root, "Where the predictions moved", "Tinted by the KL divergence (nats) of the prediction after each token.");
			const most = largest(data.kl);
			root.append(chips(run.tokens, data.kl.map((value) => value / most), "weight", data.kl.map(number)));
			section(root, "Where the stream moved", "A row is a layer, a column a token: the length of the change against the length before.");
			root.append(heat(data.stream, (row, column, value) => `layer ${row}, ${visible(run.tokens[column])}: ${percent(value)}`, data.stream.map((_, layer) => `layer ${layer}`)));
		},
		sweep(root, _, data) {
			const kind = data.axes[1], two = data.corrupted !== null && data.recovered !== null;
			const how = {
				patch: "the corrupted text with one piece of the clean run in its place",
				resample: "the clean text with one piece of the corrupted run in its place",
				zero: "the text with one piece made zero",
				mean: "the text with one piece at its mean over other texts"
			}[data.how];
			section(root, data.metric, two ? `clean ${number(data.clean)}, corrupted ${number(data.corrupted)}. A cell is ${how} (${data.what}), and shows how much of the difference that brings about: 0 none, 1 all, below 0 the opposite.` : `${number(data.clean)} without a change. A cell is ${how} (${data.what}), and shows how far that moves it.`);
			const words = two ? data.corrupted_tokens : data.clean_tokens;
			const differs = data.clean_tokens.map((token, i) => !two || token.id === data.corrupted_tokens[i].id ? 0 : .5);
			root.append(chips(data.clean_tokens, differs));
			if (two) root.append(chips(data.corrupted_tokens, differs));
			const shown = two ? data.recovered : data.values.map((row) => row.map((value) => value - data.base));
			const columns = data.units.map((unit) => kind === "token" ? visible(words[unit]) : `${kind} ${unit}`);
			const note = (at) => kind === "token" ? ` (token ${data.units[at]})` : "";
			root.append(heat(shown, (row, column, value) => `layer ${data.layers[row]}, ${columns[column]}${note(column)}: ${number(data.values[row][column])}, ${number(value)}${two ? " of the difference" : " from what it was"}`, data.layers.map((layer) => `layer ${layer}`), { across: columns }));
			const cells = shown.flatMap((row, at) => row.map((value, column) => [
				`layer ${data.layers[at]}, ${columns[column]}`,
				value,
				`${number(data.values[at][column])}${note(column)}`
			]));
			root.append(add(make("div", void 0, "scroll"), bars(cells.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 12))));
		},
		edges(root, _, data) {
			section(root, data.metric, `clean ${number(data.clean)}, corrupted ${number(data.corrupted)}. What each edge would bring back of the clean run, estimated from one backward pass.`);
			root.append(chips(data.clean_tokens), chips(data.corrupted_tokens));
			const found = data.scores.flatMap((row, s) => row.map((value, r) => [`${data.senders[s]} → ${data.receivers[r]}`, value]));
			root.append(add(make("div", void 0, "scroll"), bars(found.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 24))));
		},
		paths(root, _, data) {
			section(root, data.metric, `clean ${number(data.clean)}, corrupted ${number(data.corrupted)}. The corrupted text, in which ${data.receivers.join(", ")} alone read one part as in the clean run: how much of the difference that brings back.`);
			root.append(chips(data.clean_tokens), chips(data.corrupted_tokens));
			const found = data.senders.map((sender, at) => [
				sender,
				data.recovered[at],
				number(data.values[at])
			]);
			root.append(add(make("div", void 0, "scroll"), bars(found.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 24))));
		},
		direct(root, run, data) {
			section(root, "What adds to each next token's logit", "A row is a part of the model, a column a token of the text; a column adds up to the logit of the token that follows it.");
			root.append(heat(data.values, (row, column, value) => `${data.parts[row]}, after ${visible(run.tokens[column])}: ${number(value)} for ${visible(data.targets[column])}`, data.parts, { across: run.tokens.map(visible) }));
		},
		contexts(root, _, data) {
			section(root, `${data.what} ${data.layer}.${data.unit}`, data.corpus === null ? "Nothing has been recorded for this model yet: cutaway inspect record FILE." : `Its strongest places in ${number(data.tokens)} tokens of ${data.corpus}; ${data.quantiles.map(([share, value]) => `${percent(share)} of the tokens are not above ${number(value)}`).join(", ")}.`);
			for (const one of data.contexts) root.append(make("p", number(one.value), "faint"), chips(one.tokens, one.activations.map((value) => Math.max(0, value / Math.max(1e-9, one.value))), "neuron", one.activations.map(number)));
		},
		cache(root, _, data) {
			section(root, "What each step computed, and what it found in the cache", `${number(data.per_token_bytes)} bytes a token; ${number(data.total.multiplications)} multiplications instead of ${number(data.total.without)}.`);
			root.append(chips(data.prompt), table([
				"step",
				"writes",
				"read",
				"reused",
				"bytes written",
				"bytes reused",
				"multiplications",
				"without a cache"
			], data.steps.map((step) => [
				step.step,
				{
					text: step.token ? visible(step.token) : "the end",
					word: true
				},
				...[
					"read",
					"reused",
					"bytes_written",
					"bytes_reused",
					"multiplications",
					"without"
				].map((name) => number(step[name]))
			])));
		},
		beams(root, _, data) {
			section(root, `Keeping ${data.beams}`, "Every text that was looked at. Grey ones were dropped; green ones are what was found.");
			root.append(chips(data.prompt), table([
				"found",
				"score",
				"ended by"
			], data.results.map((one) => [
				{
					text: one.text.replace(/\n/g, "⏎"),
					word: true
				},
				number(one.score),
				one.reason
			])));
			const items = /* @__PURE__ */ new Map(), lists = /* @__PURE__ */ new Map([[null, make("ul", void 0, "tree")]]);
			for (const node of data.nodes) {
				const item = make("li", node.token ? `${visible(node.token)}  ${number(node.logprob)}${node.reason ? `  (${node.reason})` : ""}` : "the prompt", node.result !== null ? "found" : node.kept ? "" : "dropped");
				item.title = `total ${number(node.total)}, score ${number(node.score)}`;
				if (!lists.has(node.parent)) {
					lists.set(node.parent, make("ul", void 0, "tree"));
					items.get(node.parent).append(lists.get(node.parent));
				}
				lists.get(node.parent).append(item);
				items.set(node.id, item);
			}
			section(root, "The tree");
			root.append(lists.get(null));
		},
		parameters(root, _, data) {
			section(root, data.name, `${data.shape.join(" × ")}: mean ${number(data.total.mean)}, spread ${number(data.total.std)}, from ${number(data.total.min)} to ${number(data.total.max)}`);
			root.append(choose([
				"mean",
				"spread",
				"low",
				"high"
			].map((name) => [name, name]), (name) => heat(data[name], (row, column, value) => `row ${row}, column ${column} of the picture: ${name} ${number(value)}`)));
		},
		...encoders,
		...pairs
	};
	/** `draw(element, view, run, data)`: what a page and a widget call. */
	function draw(element, view, run, data) {
		standOn(element);
		element.replaceChildren();
		if (run?.tokens) element.append(chips(run.tokens));
		const known = views;
		if (known[view]) known[view](element, run ?? { tokens: [] }, data);
		else element.append(make("pre", JSON.stringify(data, null, 1)));
	}
	return draw;
})();
