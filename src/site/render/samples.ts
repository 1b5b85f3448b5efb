/** A request of the reference, with example values in its path. */
export interface SampleRequest {
  readonly method: string;
  readonly url: string;
  /** True if the request needs an API key. */
  readonly needsKey: boolean;
  /** The parsed JSON body; undefined sends none. */
  readonly body: unknown;
}

interface Sample {
  /** The name for readers. */
  readonly name: string;
  readonly language: string;
  readonly make: (request: SampleRequest) => string;
}

/** Requests in the languages of docs/languages.md, each with the language's own HTTP client. */
export const SAMPLES: readonly Sample[] = [
  { name: 'curl', language: 'bash', make: curl },
  { name: 'Node.js', language: 'javascript', make: node },
  { name: 'Python', language: 'python', make: python },
  { name: 'PHP', language: 'php', make: php },
  { name: 'Ruby', language: 'ruby', make: ruby },
  { name: 'Go', language: 'go', make: go },
];

const json = (body: unknown): string => JSON.stringify(body, null, 2);

function indent(text: string, by: string): string {
  return text.replaceAll('\n', `\n${by}`);
}

function curl({ method, url, needsKey, body }: SampleRequest): string {
  const isDefault = method === (body === undefined ? 'GET' : 'POST');
  const lines = [
    `curl ${isDefault ? '' : `-X ${method} `}"${url}"`,
    needsKey && '-H "Authorization: Bearer $API_KEY"',
    body !== undefined && '-H "Content-Type: application/json"',
    body !== undefined && `-d '${json(body).replaceAll("'", `'\\''`)}'`,
  ];
  return lines.filter((line) => line !== false).join(' \\\n  ');
}

function node({ method, url, needsKey, body }: SampleRequest): string {
  const options = [
    method !== 'GET' && `  method: '${method}',`,
    (needsKey || body !== undefined) &&
      `  headers: {${[
        needsKey && ' Authorization: `Bearer ${process.env.API_KEY}`',
        body !== undefined && " 'Content-Type': 'application/json'",
      ]
        .filter((header) => header !== false)
        .join(',')} },`,
    body !== undefined && `  body: JSON.stringify(${indent(json(body), '  ')}),`,
  ].filter((option) => option !== false);
  const rest = options.length === 0 ? '' : `, {\n${options.join('\n')}\n}`;
  return `const response = await fetch('${url}'${rest});\nconsole.log(response.status, await response.text());`;
}

function python({ method, url, needsKey, body }: SampleRequest): string {
  const headers = [
    needsKey && `        "Authorization": f"Bearer {os.environ['API_KEY']}",`,
    body !== undefined && '        "Content-Type": "application/json",',
  ].filter((header) => header !== false);
  const lines = [
    `    "${url}",`,
    method !== 'GET' && `    method="${method}",`,
    headers.length > 0 && `    headers={\n${headers.join('\n')}\n    },`,
    body !== undefined &&
      `    data=json.dumps(${indent(literal(body, { null: 'None', true: 'True', false: 'False' }), '    ')}).encode(),`,
  ].filter((line) => line !== false);
  const imports = [body !== undefined && 'json', needsKey && 'os', 'urllib.request'].filter((name) => name !== false);
  return [
    ...imports.map((name) => `import ${name}`),
    '',
    `request = urllib.request.Request(\n${lines.join('\n')}\n)`,
    'with urllib.request.urlopen(request) as response:',
    '    print(response.status, response.read().decode())',
  ].join('\n');
}

function php({ method, url, needsKey, body }: SampleRequest): string {
  const headers = [
    needsKey && "'Authorization: Bearer ' . getenv('API_KEY')",
    body !== undefined && "'Content-Type: application/json'",
  ].filter((header) => header !== false);
  const options = [
    `'method' => '${method}'`,
    headers.length > 0 && `'header' => [${headers.join(', ')}]`,
    body !== undefined && `'content' => json_encode(${indent(phpLiteral(body), '    ')})`,
    "'ignore_errors' => true",
  ].filter((option) => option !== false);
  return [
    '<?php',
    `$context = stream_context_create(['http' => [\n${options.map((option) => `    ${option},`).join('\n')}\n]]);`,
    `$answer = file_get_contents('${url}', false, $context);`,
    'echo $http_response_header[0], "\\n", $answer;',
  ].join('\n');
}

function ruby({ method, url, needsKey, body }: SampleRequest): string {
  const name = method.charAt(0) + method.slice(1).toLowerCase();
  return [
    "require 'json'",
    "require 'net/http'",
    '',
    `uri = URI('${url}')`,
    `request = Net::HTTP::${name}.new(uri)`,
    needsKey && `request['Authorization'] = "Bearer #{ENV.fetch('API_KEY')}"`,
    body !== undefined && "request['Content-Type'] = 'application/json'",
    body !== undefined && `request.body = JSON.generate(${literal(body, { null: 'nil', pair: ' => ', escaped: '#' })})`,
    "response = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https') { |http| http.request(request) }",
    'puts response.code, response.body',
  ]
    .filter((line) => line !== false)
    .join('\n');
}

function go({ method, url, needsKey, body }: SampleRequest): string {
  const content = body === undefined ? 'nil' : 'body';
  const imports = ['fmt', 'io', 'net/http', ...(needsKey ? ['os'] : []), ...(body === undefined ? [] : ['strings'])];
  const lines = [
    body !== undefined && `body := strings.NewReader(\`${json(body).replaceAll('`', '` + "`" + `')}\`)`,
    `request, err := http.NewRequest("${method}", "${url}", ${content})`,
    'if err != nil {\n\t\tpanic(err)\n\t}',
    needsKey && 'request.Header.Set("Authorization", "Bearer "+os.Getenv("API_KEY"))',
    body !== undefined && 'request.Header.Set("Content-Type", "application/json")',
    'response, err := http.DefaultClient.Do(request)',
    'if err != nil {\n\t\tpanic(err)\n\t}',
    'defer response.Body.Close()',
    'answer, _ := io.ReadAll(response.Body)',
    'fmt.Println(response.StatusCode, string(answer))',
  ].filter((line) => line !== false);
  return [
    'package main',
    '',
    `import (\n${imports.map((name) => `\t"${name}"`).join('\n')}\n)`,
    '',
    `func main() {\n${lines.map((line) => `\t${line}`).join('\n')}\n}`,
  ].join('\n');
}

interface Words {
  readonly null: string;
  readonly true?: string;
  readonly false?: string;
  readonly pair?: string;
  /** A character that starts an interpolation in a string and must be escaped. */
  readonly escaped?: string;
}

/** Formats a JSON value as a literal of a language whose strings, lists and maps resemble those of JSON. */
function literal(value: unknown, words: Words, depth = 1): string {
  if (value === null) return words.null;
  if (typeof value === 'boolean') return words[`${value}`] ?? String(value);
  if (typeof value === 'string') return quote(value, words);
  if (typeof value !== 'object') return JSON.stringify(value);
  const by = '  '.repeat(depth);
  const end = '  '.repeat(depth - 1);
  if (Array.isArray(value)) {
    const items = value.map((item) => `${by}${literal(item, words, depth + 1)}`);
    return items.length === 0 ? '[]' : `[\n${items.join(',\n')}\n${end}]`;
  }
  const entries = Object.entries(value).map(
    ([key, item]) => `${by}${quote(key, words)}${words.pair ?? ': '}${literal(item, words, depth + 1)}`,
  );
  return entries.length === 0 ? '{}' : `{\n${entries.join(',\n')}\n${end}}`;
}

function quote(text: string, { escaped }: Words): string {
  const quoted = JSON.stringify(text);
  return escaped === undefined ? quoted : quoted.replaceAll(escaped, `\\${escaped}`);
}

function phpLiteral(value: unknown, depth = 1): string {
  if (typeof value === 'string') return `'${value.replaceAll(/[\\']/g, '\\$&')}'`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const by = '    '.repeat(depth);
  const items = Array.isArray(value)
    ? value.map((item) => phpLiteral(item, depth + 1))
    : Object.entries(value).map(([key, item]) => `${phpLiteral(key)} => ${phpLiteral(item, depth + 1)}`);
  // PHP serializes an empty array as a JSON list.
  if (items.length === 0) return Array.isArray(value) ? '[]' : 'new stdClass()';
  return `[\n${items.map((item) => `${by}${item},`).join('\n')}\n${'    '.repeat(depth - 1)}]`;
}
