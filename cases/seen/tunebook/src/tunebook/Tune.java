package tunebook;

import java.util.ArrayList;
import java.util.List;

/** A tune in ABC notation: fields "X:", "T:", "R:", "K:" and lines of notes. */
final class Tune {
    final int number;
    final String title;
    final String rhythm;
    final String key;
    final int[] pitches;

    private Tune(int number, String title, String rhythm, String key, int[] pitches) {
        this.number = number;
        this.title = title;
        this.rhythm = rhythm;
        this.key = key;
        this.pitches = pitches;
    }

    static Tune parse(List<String> lines) {
        int number = -1;
        String title = "";
        String rhythm = "";
        String key = "C";
        List<Integer> notes = new ArrayList<>(160);
        for (String line : lines) {
            if (line.length() > 1 && line.charAt(1) == ':') {
                String value = line.substring(2).trim();
                switch (line.charAt(0)) {
                    case 'X' -> number = Integer.parseInt(value);
                    case 'T' -> title = value;
                    case 'R' -> rhythm = value;
                    case 'K' -> key = value;
                    default -> { }
                }
                continue;
            }
            notes(line, notes);
        }
        int[] pitches = new int[notes.size()];
        for (int i = 0; i < pitches.length; i++) pitches[i] = notes.get(i);
        return new Tune(number, title, rhythm, key, pitches);
    }

    private static final int[] STEPS = {9, 11, 0, 2, 4, 5, 7};

    private static void notes(String line, List<Integer> out) {
        int sharp = 0;
        for (int i = 0; i < line.length(); i++) {
            char c = line.charAt(i);
            if (c == '^') { sharp++; continue; }
            if (c == '_') { sharp--; continue; }
            if (c >= 'A' && c <= 'G') {
                out.add(60 + STEPS[c - 'A'] + sharp);
            } else if (c >= 'a' && c <= 'g') {
                out.add(72 + STEPS[c - 'a'] + sharp);
            } else if (c == '\'' && !out.isEmpty()) {
                out.set(out.size() - 1, out.get(out.size() - 1) + 12);
            } else if (c == ',' && !out.isEmpty()) {
                out.set(out.size() - 1, out.get(out.size() - 1) - 12);
            }
            sharp = 0;
        }
    }

    /** What stays the same when a tune is played in another key. */
    int[] intervals() {
        int[] d = new int[Math.max(0, pitches.length - 1)];
        for (int i = 0; i < d.length; i++) d[i] = pitches[i + 1] - pitches[i];
        return d;
    }
}
