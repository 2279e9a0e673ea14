import java.util.ArrayList;
import java.util.List;

final class Order {
    record Item(String sku, int quantity, long cents) {
        long total() { return quantity * cents; }
    }

    final int day;
    final String customer;
    final List<Item> items = new ArrayList<>();

    Order(String line) {
        String[] f = line.split(";");
        day = Integer.parseInt(f[0]);
        customer = f[1];
        for (String s : f[2].split(",")) {
            String[] p = s.split(":");
            items.add(new Item(p[0], Integer.parseInt(p[1]), Long.parseLong(p[2])));
        }
    }

    long net() {
        long sum = 0;
        for (Item i : items) sum += i.total();
        return sum;
    }
}
