/** A piece of HTML that needs no more escaping. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** A template whose values are escaped, for content and for quoted attributes alike, unless they are Html themselves. */
export function html(strings: TemplateStringsArray, ...values: (string | number | Html | Html[])[]): Html {
  const texts = values.map((value) =>
    [value]
      .flat()
      .map((part) =>
        part instanceof Html ? part.text : String(part).replace(/[&<>"']/g, (c) => ENTITIES[c] as string),
      )
      .join(''),
  );
  return new Html(String.raw({ raw: strings }, ...texts));
}
