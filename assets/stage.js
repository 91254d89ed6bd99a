// The stage of SpecViz: shows one run, live or recorded, one step at a time.
//
// Items arrive packed and in order (inbox.js) and build a run (run.js). What is shown is `state`; every
// view gets it once a frame with the names of what changed, and nothing else talks to the page. Model text
// reaches the document through textContent alone.

import { EXTRA_NODE, findExtra, h } from './stage/dom.js';
import { makeHeader } from './stage/header.js';
import { openInbox } from './stage/inbox.js';
import { openGiven } from './stage/lessons/lessons.js';
import { makeLibrary } from './stage/library.js';
import { makeMetrics } from './stage/metrics.js';
import { paletteStyle } from './stage/palette.js';
import { makePermalink, readLink } from './stage/permalink.js';
import { makeRecorder } from './stage/record.js';
import { makeRibbon } from './stage/ribbon.js';
import { Run } from './stage/run.js';
import { makeTabs } from './stage/tabs.js';
import { makeToolbar } from './stage/toolbar.js';
import { makeTransport, stepOfKey } from './stage/transport.js';
import { language, openWords, t } from './stage/words.js';

// Rules for what lies around the stage; the style sheet of a component reaches only inside it.
const PAGE_RULES = `
  .html-container:has(> * > .stage) { padding: 0; }
  @media (max-width: 40rem) { .gradio-container .app { padding: 0.5rem; } }
`;

export function start(context) {
  localize(context);
  const stage = new Stage(context);
  openInbox(context, (item, message, tape) => stage.receive(item, message, tape), (error) => stage.set({ error }));
  stage.library.openFirst(readLink());
  openGiven(stage);
  document.addEventListener('specviz:waiting', () => stage.announce('waiting'));
  document.addEventListener('specviz:racing', () => { stage.announce('waiting'); stage.set({ view: 'run' }); });
  document.addEventListener('specviz:stopping', () => stage.announce('stopping'));
  document.addEventListener('specviz:over', () => stage.close());
  document.addEventListener('keydown', (event) => stage.pressKey(event));
  return stage;
}

class Stage {
  constructor(context) {
    this.context = context;
    this.root = context.element.querySelector('.stage');
    this.state = { run: null, row: 0, step: 0, node: null, expert: null, moment: 'commit', view: 'step', follow: true, playing: false, phase: 'idle', error: '', offer: '' };
    this.changed = new Set(Object.keys(this.state));
    this.permalink = makePermalink(this);
    this.views = [makeToolbar, makeHeader, makeMetrics, makeRibbon, makeTransport, makeTabs].map((make) => make(this));
    const style = h('style', {}, PAGE_RULES + paletteStyle(context.constants.figures.palette));
    this.root.replaceChildren(style, h('h2', { class: 'unseen' }, t('The run')), ...this.views.map((view) => view.element));
    this.recorder = makeRecorder(this);
    this.library = makeLibrary(this);
    this.scheduled = false;
    this.draw();
  }

  get row() { return this.state.run?.rows[this.state.row]; }

  // What the address and the chooser call the run.
  get traceName() { return this.state.run?.origin === 'recorded' ? this.state.run.name : this.state.run?.id; }

  get frame() { return this.row?.steps[this.state.step]; }

  // Change what is shown; the views follow in the next frame.
  set(changes) {
    for (const [name, value] of Object.entries(changes)) {
      if (this.state[name] === value) continue;
      this.state[name] = value;
      this.changed.add(name);
    }
    this.redraw();
  }

  touch(name) {
    this.changed.add(name);
    this.redraw();
  }

  redraw() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.scheduled = false;
    const changed = this.changed;
    this.changed = new Set();
    for (const view of [...this.views, this.permalink]) view.update(this.state, changed);
    Object.assign(this.root.dataset, { phase: this.state.phase, moment: this.state.moment, run: this.state.run?.id ?? '' });
  }

  // A person chose a step, or something of it: following ends unless it is the newest one.
  choose({ row: asked = this.state.row, step = this.state.step, node = null, expert = null }) {
    const row = this.state.run?.rows[asked] ? asked : 0;
    const last = (this.state.run?.rows[row]?.steps.length ?? 1) - 1;
    const target = Math.max(0, Math.min(step, last));
    const frame = this.state.run?.rows[row]?.steps[target];
    this.set({ row, step: target, node: hasNode(frame, node) ? node : null, expert, follow: this.state.follow && target === last });
  }

  // Decode what a link says (specviz/ui/run_events.py).
  runAgain(link) {
    if (this.state.phase === 'idle') this.context.runAgain(link);
  }

  // Ask Python for something (specviz/ui/questions.py).
  async ask(kind, values = {}) {
    const { value, error, missing } = await this.context.server.answer({ ...values, kind, language: language() });
    if (error) throw new Error(error);
    return missing ? undefined : value;
  }

  // The same about a whole run; a server that has forgotten it gets it again.
  async askOfRun(kind, values = {}, run = this.state.run) {
    const row = run === this.state.run ? this.state.row : 0;
    const ask = () => this.ask(kind, { row, ...values, run: run.handle });
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (!run.isRecorded) throw new Error(t('The server no longer holds this run.'));
    run.handle = await this.ask('keep', { trace: run.toJson() });
    const again = await ask();
    if (again === undefined) throw new Error(t('The server no longer holds the other run of this question; open that one again.'));
    return again;
  }

  // A step to the last digit, with a sentence for each node: {step, why}.
  recordOf(index = this.state.step) {
    return this.recorder.read(this.state.run, this.row, index);
  }

  receive(item, message, tape) {
    if (item.kind === 'start') return this.begin(item, message, tape);
    if (item.kind === 'failed') return this.set({ phase: 'idle', error: item.message });
    const { run } = this.state;
    if (!run || run.id !== message.run) return undefined;
    run.apply(item);
    this.touch(item.kind === 'step' ? 'steps' : item.kind);
    if (item.kind === 'finish') this.end(run, message);
    else this.library.keepSoFar(run);
    if (item.kind === 'step' && item.row === this.state.row && this.state.follow) this.showNewest(run);
    return undefined;
  }

  end(run, { records }) {
    if (records) run.rows.forEach((row, i) => { row.records = records[i]; });
    this.clampStep();
    this.choose(this.library.takePlace() ?? this.state);
    this.set({ phase: 'idle', error: run.failed ? run.message : this.state.error });
    this.library.keep(run);
  }

  begin(item, message, tape) {
    const origin = message.origin ?? item.origin;
    const run = new Run({ ...item, origin }, message.run, tape);
    const live = origin === 'live';
    const step = live ? 0 : 1; // a recording opens on its first speculative step
    const told = message.files ? {} : { error: '', offer: '' }; // what came with the page says nothing against a link
    this.set({ run, row: 0, step, node: null, expert: null, moment: 'commit', ...told, follow: live, playing: false, phase: live ? 'running' : 'loading' });
  }

  // A trace may hold nothing but its prefill.
  clampStep() {
    this.set({ step: Math.max(0, Math.min(this.state.step, this.row.steps.length - 1)) });
  }

  showNewest(run) {
    this.set({ step: Math.max(0, run.rows[this.state.row].steps.length - 1), node: null, expert: null, moment: 'commit' });
  }

  announce(phase) {
    if (phase === 'waiting') this.bringIntoView();
    this.set(phase === 'waiting' ? { phase, error: '' } : { phase });
  }

  // On a phone the stage lies below the controls.
  bringIntoView() {
    const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
    const hidden = this.root.getBoundingClientRect().top > window.innerHeight - 100;
    if (hidden) this.root.scrollIntoView({ behavior: calm ? 'auto' : 'smooth', block: 'start' });
  }

  // All of a run is here that will come. If its end is not (cancelled, connection lost), what is shown stays and is kept.
  close({ records } = {}) {
    this.context.drained().then(() => {
      const { run } = this.state;
      if (run && run.origin !== 'recorded' && !run.finished) {
        run.cutOff();
        this.end(run, { records });
      }
      this.touch('finish');
      this.set({ phase: 'idle' });
    });
  }

  pressKey(event) {
    const target = stepOfKey(event, this.state.step, this.root);
    if (target === undefined || !this.row) return;
    event.preventDefault();
    this.set({ playing: false });
    this.choose({ step: target });
  }
}

// The constants in the language of the page, and the words of the scripts.
function localize({ constants, language: fixed }) {
  openWords({ words: constants.words, language: fixed });
  Object.assign(constants, constants.translated?.[language()]);
}

// A link may name a node that a step does not have.
function hasNode(frame, node) {
  return node === EXTRA_NODE ? Boolean(findExtra(frame?.step)) : Boolean(frame?.step.nodes[node]);
}
