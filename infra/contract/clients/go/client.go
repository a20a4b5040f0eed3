// Uses the client that openapi-generator generates for Go.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"example/market"
)

const pageSize = 100

func main() {
	configuration := market.NewConfiguration()
	configuration.Servers = market.ServerConfigurations{{URL: os.Getenv("API_BASE_URL")}}
	client := market.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), market.ContextAccessToken, os.Getenv("API_KEY"))
	callEveryEndpoint(ctx, client)
	walk(ctx, client)
	sendABadParameter(ctx, client)
	useUpABudget(ctx, client)
	receiveAWebhook(os.Getenv("WEBHOOK_PORT"), os.Getenv("WEBHOOK_SECRET"))
}

func callEveryEndpoint(ctx context.Context, client *market.APIClient) {
	me := ok(client.KeyAPI.GetMe(ctx).Execute())
	must(len(me.Scopes) > 0, "a key without scopes")
	listings := ok(client.ListingsAPI.SearchListings(ctx).Sort("price_asc").PageSize(1).Execute())
	listing := listings.Items[0]
	item := ok(client.CatalogAPI.GetItem(ctx, *listing.ItemId.Get()).Execute())
	must(len(item.Variants) > 0, "an item without variants")
	prices := ok(client.CatalogAPI.GetPrices(ctx, *listing.VariantId.Get()).Execute())
	must(prices.SampleSize > 0, "prices of no quote")
	must(len(ok(client.CatalogAPI.ListMarketplaces(ctx).Execute())) > 0, "no marketplaces")
	must(len(ok(client.AccountAPI.ListOrders(ctx).Execute()).Items) > 0, "no orders")
	must(ok(client.AccountAPI.GetBalance(ctx).Execute()).AvailableUsd != "", "no balance")
	must(len(ok(client.DescriptionAPI.GetDescription(ctx).Execute())) > 0, "no description")
}

func walk(ctx context.Context, client *market.APIClient) {
	ids := map[string]bool{}
	for page := int64(1); ; page++ {
		answer := ok(client.CatalogAPI.SearchCatalog(ctx).Page(page).PageSize(pageSize).Execute())
		for _, item := range answer.Items {
			ids[item.Id] = true
		}
		if page*pageSize >= answer.Total {
			must(int64(len(ids)) == answer.Total, "items are missing")
			fmt.Println("walked", len(ids), "items")
			return
		}
	}
}

func sendABadParameter(ctx context.Context, client *market.APIClient) {
	_, response, err := client.CatalogAPI.SearchCatalog(ctx).PageSize(pageSize + 1).Execute()
	must(response.StatusCode == http.StatusBadRequest, "not a 400")
	field := refusal(err).Fields[0]
	must(field.Field == "page_size" && field.Code == "out_of_range", "another field or code")
}

func useUpABudget(ctx context.Context, client *market.APIClient) {
	_, response, err := client.KeyAPI.GetMe(ctx).Execute()
	for err == nil {
		_, response, err = client.KeyAPI.GetMe(ctx).Execute()
	}
	must(response.StatusCode == http.StatusTooManyRequests, "not a 429")
	must(refusal(err).Code == "rate_limits.exceeded", "another code")
	wait := response.Header.Get("Retry-After")
	must(wait != "", "no Retry-After")
	fmt.Println("must wait", wait, "seconds")
}

func receiveAWebhook(port string, secret string) {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	must(err == nil, "cannot listen")
	received := make(chan market.ListingSoldEvent)
	handler := func(writer http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		must(err == nil && isGenuine(secret, body, request.Header.Get("X-Service-Signature")), "not genuine")
		var event market.ListingSoldEvent
		must(json.Unmarshal(body, &event) == nil, "not a listing.sold")
		writer.WriteHeader(http.StatusNoContent)
		received <- event
	}
	go http.Serve(listener, http.HandlerFunc(handler))
	fmt.Println("listening")
	event := <-received
	fmt.Println("sold:", event.Data.ListingId, "for", event.Data.PriceUsd)
}

func isGenuine(secret string, body []byte, signature string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	expected := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(expected), []byte(signature))
}

// ok returns the body of a 200, and ends the program for every other response.
func ok[T any](body T, _ *http.Response, err error) T {
	must(err == nil, fmt.Sprint(err))
	return body
}

// refusal returns the body of an error response.
func refusal(err error) market.ErrorBody {
	var refused *market.GenericOpenAPIError
	must(errors.As(err, &refused), fmt.Sprint(err))
	envelope, typed := refused.Model().(market.ErrorEnvelope)
	must(typed, "an error of another type")
	return envelope.Error
}

func must(holds bool, otherwise string) {
	if !holds {
		log.Fatal(otherwise)
	}
}
