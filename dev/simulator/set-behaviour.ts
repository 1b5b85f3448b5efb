/** Sets the behavior of a running simulator; see Behaviour. @param url the simulator's URL with any path */
export async function setBehaviour(url: string, behaviour: object): Promise<void> {
  const response = await fetch(new URL('/simulator/behaviour', url), {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(behaviour),
  });
  if (!response.ok) throw new Error(`the simulator refuses the behaviour: ${await response.text()}`);
}
