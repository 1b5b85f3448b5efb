import { parser } from '@prometheus-io/lezer-promql';

/** A metric with the labels of its series and their values. */
export interface Metric {
  readonly type: string;
  readonly help: string;
  readonly labels: Map<string, Set<string>>;
}

/** The metrics of pages by their names. Series of a histogram belong to it. */
export function parsePage(...pages: readonly string[]): Map<string, Metric> {
  const metrics = new Map<string, Metric>();
  const helps = new Map<string, string>();
  for (const line of pages.join('\n').split('\n')) {
    const [, what, about = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (what === 'HELP') helps.set(about, rest);
    if (what === 'TYPE' && !metrics.has(about)) {
      metrics.set(about, { type: rest, help: helps.get(about) ?? '', labels: new Map() });
    }
    const [, series = '', labels = ''] = /^([a-z_:0-9]+)(?:\{(.*)\})? \S+$/i.exec(line) ?? [];
    const metric = metrics.get(series) ?? metrics.get(series.replace(/_(?:bucket|sum|count)$/, ''));
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      const values = metric?.labels.get(label) ?? new Set<string>();
      metric?.labels.set(label, values.add(value));
    }
  }
  return metrics;
}

/** A selector of series in a query. */
export interface Selector {
  readonly name: string;
  readonly matchers: readonly { readonly label: string; readonly value: string }[];
}

/**
 * Parses a PromQL query.
 * @throws Error if it is invalid
 */
export function parseQuery(query: string): { selectors: Selector[]; grouping: string[] } {
  const selectors: Selector[] = [];
  const grouping: string[] = [];
  const text = ({ from, to }: { from: number; to: number }) => query.slice(from, to);
  parser.parse(query).iterate({
    enter(node) {
      if (node.type.isError) throw new Error(`invalid PromQL at ${node.from}: ${query}`);
      if (node.name === 'VectorSelector') {
        const name = node.node.getChild('Identifier');
        const matchers = node.node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
        selectors.push({
          name: name ? text(name) : '',
          matchers: matchers.map((matcher) => {
            const [label, value] = [matcher.getChild('LabelName'), matcher.getChild('StringLiteral')];
            if (!label || !value) throw new Error(`invalid matcher: ${text(matcher)}`);
            return { label: text(label), value: text(value).slice(1, -1) };
          }),
        });
      }
      if (node.name === 'GroupingLabels') grouping.push(...node.node.getChildren('LabelName').map(text));
    },
  });
  return { selectors, grouping };
}
